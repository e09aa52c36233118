"""State that methods begin which no call leads to: what runs a model calls `reset` or `init_hidden` before, and `__init__` sets nothing.

The call reads such an attribute. What those methods bind it to is found by running them, with arguments of which nothing is known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from exportlens.inference.attribute_writes import keep_attribute
from exportlens.inference.classes import class_attribute, class_order
from exportlens.inference.functions import call_function
from exportlens.inference.machine import Machine, OutOfBudget, Raised
from exportlens.inference.values import (
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Sequence,
    Tensor,
    Unknown,
    Value,
)
from exportlens.source.walking import walk

_DECIDED = (
    ast.If,
    ast.IfExp,
    ast.While,
    ast.For,
    ast.Try,
    ast.BoolOp,
    ast.Lambda,
    ast.FunctionDef,
    ast.comprehension,
)
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
# How deep parts of parts are looked at.
_MAX_DEPTH = 3


def begin_outside(machine: Machine, instance: Instance, depth: int = 0) -> list[tuple[Instance, str]]:
    """Give `instance` and its parts the tensors that methods begin from outside of the call, where the call reads them.

    Returns the attributes that such methods begin with what is not known, as an argument of theirs.
    """
    if depth > _MAX_DEPTH or instance.traced:
        return []
    unknown = []
    for held in list(instance.attributes.values()):
        if isinstance(held, Instance):
            unknown += begin_outside(machine, held, depth + 1)
    methods = _methods(instance.cls)
    uses = [_uses(each.node) for each in methods.values()]
    # What no other method writes is the constructor's: most classes end here.
    shared = set().union(*(each.read for each in uses)) & set().union(*(each.written for each in uses))
    missing = {attr for attr in shared if _is_missing(instance, attr)}
    writers = [each for each in methods.values() if missing & _uses(each.node).written]
    if not writers or instance.open:
        return unknown
    document = writers[0].scope.document
    called = named_from_forward(statement for placed in document.placed for statement in placed.chunk.body)
    inside = [each for each in methods.values() if each.name in called]
    asked = {attr for each in inside for attr in _uses(each.node).asked}
    read = {attr for each in inside for attr in _uses(each.node).read} & missing - asked
    # Of what is None the call may read nothing until it has bound it.
    empty = read & instance.attributes.keys()
    read -= empty - {attr for each in inside if each.name == "forward" for attr in _uses(each.node).certain}
    for method in writers:
        wanted = read & _uses(method.node).written
        if wanted and method.name not in called and not _runs_the_call(method.node, methods):
            begun = _begun_by(machine, instance, method, wanted)
            for attr, value in begun.items():
                keep_attribute(machine, instance, attr, value)
                read.discard(attr)
            for attr in wanted - begun.keys() - empty:
                told = machine.begun.get((_class_of(instance), attr))
                if told is None:
                    unknown.append((instance, attr))
                else:
                    keep_attribute(machine, instance, attr, told)
                    read.discard(attr)
    return unknown


def tell_begun(machine: Machine, unknown: list[tuple[Instance, str]]) -> None:
    """Keep for another run what begins those of the `unknown` attributes that the call has bound to tensors: one like that."""
    for instance, attr in unknown:
        value, key = instance.attributes.get(attr), (_class_of(instance), attr)
        if isinstance(value, Tensor) and value.origin != "constant" and key not in machine.begun:
            machine.begun[key] = Tensor(dtype=value.dtype, rank=value.rank, origin="constant")


def _class_of(instance: Instance) -> str:
    return instance.cls.name if isinstance(instance.cls, ClassValue) else ""


def named_from_forward(statements: Iterable[ast.stmt]) -> set[str]:
    """The names of all functions that a `forward` leads to, as far as their names tell."""
    named: dict[str, list[_FunctionNode]] = {}
    for statement in statements:
        for each in walk(statement):
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                named.setdefault(each.name, []).append(each)
    found: set[str] = set()
    waiting = ["forward"]
    while waiting:
        name = waiting.pop()
        if name in named and name not in found:
            found.add(name)
            for each in (each for function in named[name] for each in walk(function)):
                if isinstance(each, ast.Attribute):
                    waiting.append(each.attr)
                elif isinstance(each, ast.Name):
                    waiting.append(each.id)
    return found


def _methods(cls: Value) -> dict[str, Function]:
    """The plain methods of the class and its bases in the workspace, without the constructor."""
    found: dict[str, Function] = {}
    for each in class_order(cls):
        if not isinstance(each, ClassValue) or each.scope.library or not isinstance(each.node, ast.ClassDef):
            continue
        for node in each.node.body:
            if isinstance(node, ast.FunctionDef) and node.name != "__init__" and node.name not in found:
                value, _, _ = class_attribute(cls, node.name)
                if isinstance(value, Function) and not value.decorators:
                    found[node.name] = value
    return found


def _is_missing(instance: Instance, attr: str) -> bool:
    if attr in instance.attributes:
        return instance.attributes[attr] == Const(None)
    return class_attribute(instance.cls, attr)[0] is None


def _begun_by(machine: Machine, instance: Instance, method: Function, wanted: set[str]) -> dict[str, Value]:
    """The tensors, or containers of them, that `method` binds the `wanted` attributes to; it leaves all others as they were."""
    before = dict(instance.attributes)
    spec = method.node.args
    positional = [*spec.posonlyargs, *spec.args]
    needed = positional[1 : len(positional) - len(spec.defaults)]
    only = {
        each.arg: Unknown("an argument")
        for each, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
        if default is None
    }
    try:
        call_function(
            machine,
            method,
            [instance, *(Unknown("an argument") for _ in needed)],
            dict(only),
            None,
            method.node,
        )
    except (Raised, OutOfBudget, RecursionError):
        return {}
    finally:
        begun = {attr: instance.attributes.get(attr) for attr in wanted}
        for attr in [*instance.attributes]:
            if attr not in before:
                del instance.attributes[attr]
        for attr, value in before.items():
            if instance.attributes.get(attr) is not value:
                keep_attribute(machine, instance, attr, value)
    return {
        attr: value
        for attr, value in begun.items()
        if value is not None and any(True for _ in _tensors(value))
    }


def _tensors(value: Value) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Sequence):
        for each in value.items or ():
            yield from _tensors(each)
    elif isinstance(value, Mapping_):
        for each in value.items.values():
            yield from _tensors(each)


def _runs_the_call(method: ast.AST, methods: dict[str, Function]) -> bool:
    """Whether `method` leads to the call itself, as one that trains the model does."""
    found: set[str] = set()
    waiting: list[ast.AST] = [method]
    while waiting:
        for each in walk(waiting.pop()):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "self":
                return True
            if isinstance(each, ast.Attribute) and each.attr not in found:
                found.add(each.attr)
                if each.attr in methods:
                    waiting.append(methods[each.attr].node)
    return "forward" in found


class _Uses:
    """Which attributes of `self` a method reads, does in each call what None does not have, binds to more than None, and asks whether they are there."""

    def __init__(self, method: ast.AST) -> None:
        self.read: set[str] = set()
        self.certain = _certainly_used(method)
        self.written: set[str] = set()
        self.asked: set[str] = set()
        emptied = {
            id(target)
            for each in walk(method)
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
            for target in each.targets
        }
        for each in walk(method):
            if (attr := _of_self(each)) is not None and isinstance(each, ast.Attribute):
                if isinstance(each.ctx, ast.Load):
                    self.read.add(attr)
                elif isinstance(each.ctx, ast.Store) and id(each) not in emptied:
                    self.written.add(attr)
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                self.asked.add(each.value)
            self.asked |= {attr for one in _asked_by(each) if (attr := _of_self(one)) is not None}


def _certainly_used(method: ast.AST) -> set[str]:
    """The attributes of which `method` does in each call what None does not have, whatever is decided there."""
    parts: list[ast.AST] = []
    waiting: list[ast.AST] = list(ast.iter_child_nodes(method))
    while waiting:
        each = waiting.pop()
        parts.append(each)
        if not isinstance(each, _DECIDED):
            waiting += ast.iter_child_nodes(each)
    # `h, c = self.h, self.c`
    names = {
        target.id: attr
        for each in parts
        if isinstance(each, ast.Assign)
        for target, value in _pairs(each)
        if isinstance(target, ast.Name) and (attr := _of_self(value)) is not None
    }
    found: set[str | None] = set()
    for each in parts:
        used: list[ast.expr] = []
        if isinstance(each, ast.BinOp):
            used = [each.left, each.right]
        elif (isinstance(each, (ast.Attribute, ast.Subscript)) and isinstance(each.ctx, ast.Load)) or (
            isinstance(each, ast.Assign) and all(isinstance(one, ast.Tuple) for one in each.targets)
        ):
            used = [each.value]
        for one in used:
            found |= {_of_self(one), names.get(one.id) if isinstance(one, ast.Name) else None}
    return {each for each in found if each is not None}


def _pairs(statement: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _asked_by(node: ast.AST) -> list[ast.expr]:
    """What `node` asks for its truth, or compares with None."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return sides if any(isinstance(each, ast.Constant) and each.value is None for each in sides) else []
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return [node.test]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    return node.values if isinstance(node, ast.BoolOp) else []


def _of_self(node: ast.AST) -> str | None:
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if own and isinstance(node, ast.Attribute) else None


@lru_cache(maxsize=1024)
def _uses(method: ast.AST) -> _Uses:
    return _Uses(method)
