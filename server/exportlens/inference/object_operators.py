"""Operators of objects: what the classes of the workspace say of `a @ b` and `~a`."""

from __future__ import annotations

import ast

from exportlens.inference.classes import class_attribute, class_order, is_known_base, is_module_base
from exportlens.inference.lattice import join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.places import ObjectOperator
from exportlens.inference.values import (
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Named,
    Unknown,
    Value,
    options,
)

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitOr: "or",
    ast.BitAnd: "and",
    ast.BitXor: "xor",
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


def applied(
    machine: Machine,
    op: ast.operator,
    left: Value,
    right: Value,
    frame: Frame,
    node: ast.AST,
    sure: bool,
) -> Value | None:
    """What `left op right` gives where the class of one of them defines it; None where none does."""
    name = _BINARY[type(op)]
    ways = [(left, f"__{name}__", right), (right, f"__r{name}__", left)]
    if _goes_first(right, left, f"__r{name}__"):
        ways.reverse()
    if isinstance(node, ast.AugAssign):
        ways.insert(0, (left, f"__i{name}__", right))
    for owner, method, other in ways:
        function = _defined(owner, method)
        if function is None:
            continue
        result = _called(machine, function, owner, [other], frame, node)
        if result is None:
            continue
        given, certain = result
        if owner is left or _is_known(left):
            _notice(machine, owner, method, other, certain, frame, node, sure)
        return given
    return None


def applied_alone(
    machine: Machine, op: ast.unaryop, value: Value, frame: Frame, node: ast.AST, sure: bool
) -> Value | None:
    """What `op value` gives where the class of `value` defines it; None where it does not."""
    method = f"__{_UNARY[type(op)]}__"
    function = _defined(value, method)
    if function is None:
        return None
    result = _called(machine, function, value, [], frame, node)
    if result is None:
        return None
    _notice(machine, value, method, None, True, frame, node, sure)
    return result[0]


def always_objects(value: Value) -> bool:
    """Whether what may be one of several is an object each time, or None, of which no operator is used."""
    return all(
        isinstance(each, Instance) or each == Const(None) for each in options(value)
    ) or not isinstance(value, Choice)


def is_plain(value: Value) -> bool:
    """Whether an object is no tensor, and takes no part in how torch dispatches."""
    return (
        isinstance(value, Instance)
        and not value.open
        and all(isinstance(each, ClassValue) or _is_plain_base(each) for each in class_order(value.cls))
        and all(class_attribute(value.cls, each)[0] is None for each in _DISPATCHED)
    )


def _notice(
    machine: Machine,
    owner: Value,
    method: str,
    other: Value | None,
    certain: bool,
    frame: Frame,
    node: ast.AST,
    sure: bool,
) -> None:
    if machine.emits(ObjectOperator) and is_plain(owner):
        with machine.doubting(not sure):
            machine.notice(ObjectOperator(machine.site(frame), node, owner, method, other, certain))


def _called(
    machine: Machine, function: Function, owner: Value, others: list[Value], frame: Frame, node: ast.AST
) -> tuple[Value, bool] | None:
    """What the method gives, without NotImplemented, and whether it certainly never gives that; None where it gives nothing else."""
    from exportlens.inference.functions import call_function

    result = call_function(machine, function, [owner, *others], {}, frame, node)
    given = [each for each in options(result) if not _is_not_implemented(each)]
    if not given:
        return None
    told = given[0]
    for each in given[1:]:
        told = join(told, each)
    certain = len(given) == len(list(options(result))) and not any(
        isinstance(each, Unknown) for each in given
    )
    return told, certain or not any(
        isinstance(each, ast.Name) and each.id == "NotImplemented" for each in ast.walk(function.node)
    )


def _is_not_implemented(value: Value) -> bool:
    return isinstance(value, Named) and value.name.rpartition(".")[2] == "NotImplemented"


def _defined(value: Value, method: str) -> Function | None:
    """The method of the class of `value`, one of the workspace; None where there is none, or where it may be another."""
    if not isinstance(value, Instance) or not isinstance(value.cls, ClassValue):
        return None
    found, _, hidden = class_attribute(value.cls, method)
    return found if isinstance(found, Function) and not hidden else None


def _goes_first(right: Value, left: Value, method: str) -> bool:
    """Whether Python asks `right` first: its class extends that of `left`, and has the reflected `method` anew."""
    if not isinstance(left, Instance) or not isinstance(right, Instance) or left.cls is right.cls:
        return False
    derived = any(each is left.cls for each in class_order(right.cls))
    return derived and class_attribute(right.cls, method)[0] is not class_attribute(left.cls, method)[0]


def _is_known(value: Value) -> bool:
    """Whether it is known which operators `value` has."""
    return not isinstance(value, (Unknown, Named)) and (not isinstance(value, Instance) or is_plain(value))


def _is_plain_base(base: Value) -> bool:
    if not isinstance(base, Named) or not is_known_base(base.name):
        return False
    return not base.name.startswith("torch.") or is_module_base(base.name)


_DISPATCHED = (
    "__torch_function__",
    "__torch_dispatch__",
    "__array_ufunc__",
    "__getattr__",
    "__getattribute__",
)
