"""What a file gives the parameters of a method of its own classes: `self.meter.update(loss.item(), n=x.size(0))`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.names import arguments, assigned_pairs
from exportlens.rewriting.code.text import Function


def given_by_calls(
    statements: Iterable[ast.stmt], cls: ast.ClassDef, function: Function, name: str, default: ast.expr | None
) -> list[ast.expr] | None:
    """What the calls of the method `function` of `cls` give its parameter `name`, `default` where they give nothing; None where a
    call may give anything, or none is known."""
    nodes = [each for statement in statements for each in ast.walk(statement)]
    holders = names_of_objects(nodes, cls.name)
    is_called = function.name in ("__call__", "forward")
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)][1:]
    if name not in {each.arg for each in arguments(function.args)} or _is_bound_anew(function, name):
        return None
    found: list[ast.expr] = []
    for each in nodes:
        if not isinstance(each, ast.Call):
            continue
        func = each.func
        named = isinstance(func, ast.Attribute) and func.attr == function.name
        of_object = isinstance(func, ast.Attribute) and _last_name(_held(func.value)) in {"self", *holders}
        if not (named and of_object) and not (is_called and _last_name(_held(func)) in holders):
            continue
        if any(isinstance(one, ast.Starred) for one in each.args) or any(
            one.arg is None for one in each.keywords
        ):
            return None
        given = dict(zip(places, each.args, strict=False)) | {
            one.arg: one.value for one in each.keywords if one.arg
        }
        value = given.get(name, default)
        if value is None:
            return None
        found.append(value)
    return found or None


def names_of_objects(nodes: list[ast.AST], cls: str) -> set[str]:
    """The names, and names of attributes, that objects of the class `cls` get, or lists and dicts of such: also those of loops over
    these, and of the parameters that they are given to."""
    names: set[str] = set()
    constructors = {
        each.name: method
        for each in nodes
        if isinstance(each, ast.ClassDef)
        for method in each.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
    }
    while True:
        found = set(names)
        for each in nodes:
            if isinstance(each, (ast.Assign, ast.AnnAssign)):
                found |= {
                    _last_name(target) for target, value in assigned_pairs(each) if _gives(value, cls, names)
                }
            elif isinstance(each, (ast.For, ast.comprehension)) and _goes_over(each.iter, names):
                found |= {one.id for one in ast.walk(each.target) if isinstance(one, ast.Name)}
            elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
                method = constructors.get(each.func.id)
                places = (
                    []
                    if method is None
                    else [one.arg for one in (*method.args.posonlyargs, *method.args.args)]
                )
                for place, given in zip(places[1:], each.args, strict=False):
                    found |= {place} if _gives(given, cls, names) else set()
                for one in each.keywords if method is not None else ():
                    found |= {one.arg} if one.arg and _gives(one.value, cls, names) else set()
        found.discard("")
        if found == names:
            return names
        names = found


def _gives(value: ast.expr | None, cls: str, names: set[str]) -> bool:
    """Whether `value` is an object of the class, one of several, or a list or dict of such."""
    if isinstance(value, ast.Call):
        made = _last_name(value.func)
        if made in ("ModuleList", "ModuleDict", "list", "dict", "tuple", "OrderedDict"):
            return any(_gives(each, cls, names) for each in value.args)
        return isinstance(value.func, ast.Name) and made == cls
    if isinstance(value, (ast.Name, ast.Attribute)):
        return _last_name(value) in names
    if isinstance(value, ast.Subscript):
        return _last_name(_held(value)) in names
    parts: list[ast.expr] = []
    if isinstance(value, ast.BoolOp):
        parts = value.values
    elif isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    elif isinstance(value, (ast.List, ast.Tuple)):
        parts = value.elts
    elif isinstance(value, ast.Dict):
        parts = value.values
    elif isinstance(value, ast.ListComp):
        parts = [value.elt]
    elif isinstance(value, ast.DictComp):
        parts = [value.value]
    return any(_gives(each, cls, names) for each in parts)


def _goes_over(over: ast.expr, names: set[str]) -> bool:
    """Whether a loop over `over` may go over objects: `self.filters`, `zip(self.filters, x)`, `self.meters.values()`."""
    if isinstance(over, ast.Call):
        of_dict = isinstance(over.func, ast.Attribute) and over.func.attr in ("values", "items")
        return (of_dict and _goes_over(over.func.value, names)) or any(
            _goes_over(one, names) for one in over.args
        )  # type: ignore[attr-defined]
    return _last_name(over) in names


def _held(node: ast.expr) -> ast.expr:
    """What holds the item that `node` takes: `self.meters` of `self.meters["loss"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_bound_anew(function: Function, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )
