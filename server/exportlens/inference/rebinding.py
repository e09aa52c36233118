"""What names are bound to in a function, and whether one still stands for a parameter where it is read."""

from __future__ import annotations

import ast
import sys

from exportlens.inference.classes import class_order
from exportlens.inference.legacy import TENSOR_TYPES
from exportlens.inference.machine import Machine
from exportlens.inference.values import ClassValue, Function
from exportlens.source.walking import walk

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef)
Binding = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For
# What makes a tensor or an array of numbers: `labels = torch.tensor(labels)` was given what is none.
_OF_NUMBERS = {"tensor", "as_tensor", "from_numpy", "array", "asarray", *TENSOR_TYPES}


def stands_for_another(function: ast.AST, name: str, node: ast.expr) -> bool:
    """Whether `name` is bound to something else where `node` stands in `function`: after `x = self.encoder(x)`, or in a lambda
    or a comprehension that has the name for itself.
    """
    return any(
        (
            isinstance(outer, _SCOPES)
            and outer is not function
            and name in _names_of(outer)
            and any(inner is node for inner in walk(outer))
        )
        or (
            isinstance(outer, Binding)
            and outer.lineno < node.lineno
            and name in _stored_by(outer)
            and not _is_of_its_own(outer, name)
        )
        for outer in walk(function)
    )


def as_given(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str) -> range | None:
    """The lines in which the parameter `name` still is what was given, where a tensor or a number is made of it on the way; None for all."""
    for statement in function.body if isinstance(function.body, list) else ():
        if isinstance(statement, ast.Assign) and _is_read_beside_others(statement, name):
            return range((statement.end_lineno or statement.lineno) + 1)
        if (
            isinstance(statement, ast.Assign)
            and [target.id for target in statement.targets if isinstance(target, ast.Name)] == [name]
            and isinstance(statement.value, ast.Call)
            and _called(statement.value) in _OF_NUMBERS
            and any(isinstance(part, ast.Name) and part.id == name for part in walk(statement.value))
        ):
            return range((statement.end_lineno or statement.lineno) + 1)
    return None


def _is_read_beside_others(statement: ast.Assign, name: str) -> bool:
    """`width, hop = int(width), int(hop)`: each keeps its name."""
    target, value = statement.targets[0], statement.value
    if not (
        isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    ):
        return False
    return any(
        isinstance(left, ast.Name)
        and left.id == name
        and isinstance(right, ast.Call)
        and _called(right) in ("int", "float")
        and [each.id for each in right.args if isinstance(each, ast.Name)] == [name]
        for left, right in zip(target.elts, value.elts, strict=True)
    )


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def was_set(function: ast.AST, name: str, node: ast.Attribute) -> bool:
    """Whether `function` sets the attribute `node` of `name` before: any object has what it was given."""
    return any(
        isinstance(other, ast.Attribute)
        and other.attr == node.attr
        and isinstance(other.ctx, ast.Store)
        and other.lineno < node.lineno
        and isinstance(other.value, ast.Name)
        and other.value.id == name
        for other in walk(function)
    )


def _stored_by(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _names_of(scope: ast.AST) -> set[str]:
    return _stored_by(scope) | {part.arg for part in walk(scope) if isinstance(part, ast.arg)}


def _is_of_its_own(binding: Binding, name: str) -> bool:
    """`graph = graph.to(device)`: what a method of an object gives is mostly like it."""
    value: ast.expr | None = None if isinstance(binding, ast.For) else binding.value
    while isinstance(value, (ast.Attribute, ast.Call)):
        value = value.value if isinstance(value, ast.Attribute) else value.func
    return isinstance(value, ast.Name) and value.id == name


def assignments(machine: Machine, function: Function) -> list[Binding]:
    """The statements of a function, inner functions included, that bind names to values; kept for the run."""
    key = ("assignments", id(function.node))
    known: list[Binding] | None = machine.memo.get(key)
    if known is None:
        known = [node for node in walk(function.node) if isinstance(node, Binding)]
        machine.memo[key] = known
    return known


def bound_by(node: Binding) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {part.id for target in targets for part in walk(target) if isinstance(part, ast.Name)}


def while_bound(machine: Machine, function: Function, name: str, given: ast.Assign) -> range:
    """The lines in which `name` is what `given` binds it to."""
    bound = [
        other
        for other in assignments(machine, function)
        if other is not given and other.lineno > given.lineno and name in bound_by(other)
    ]
    last = min((other.end_lineno or other.lineno for other in bound), default=sys.maxsize - 1)
    return range((given.end_lineno or given.lineno) + 1, last + 1)


def local_functions(machine: Machine, function: Function) -> dict[str, ast.FunctionDef | ast.Lambda]:
    """The functions and lambdas that a function's own variables are bound to once; kept for the run."""
    key = ("local functions", id(function.node))
    known: dict[str, ast.FunctionDef | ast.Lambda] | None = machine.memo.get(key)
    if known is None:
        known = {}
        for node in walk(function.node):
            if isinstance(node, ast.FunctionDef) and node is not function.node:
                known[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                known.update(
                    {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
                )
        machine.memo[key] = known
    return known


def made_in_constructor(cls: ClassValue, attr: str) -> tuple[ClassValue, ast.expr] | None:
    """What `self.attr = Maker(...)` in a constructor of the class's order calls, and the class whose constructor says so."""
    for item in class_order(cls):
        init = item.attributes.get("__init__") if isinstance(item, ClassValue) else None
        if not isinstance(init, Function) or not isinstance(item, ClassValue):
            continue
        for node in walk(init.node):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                for target in node.targets:
                    if (
                        isinstance(target, ast.Attribute)
                        and target.attr == attr
                        and isinstance(target.value, ast.Name)
                        and target.value.id == "self"
                    ):
                        return item, node.value.func
    return None
