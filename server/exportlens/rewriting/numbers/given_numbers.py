"""What a file gives the parameters of a method of its own classes: `self.meter.update(loss.item(), n=x.size(0))`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from exportlens.rewriting.code.names import arguments, assigned_pairs
from exportlens.rewriting.code.text import Function


def given_by_calls(
    statements: Iterable[ast.stmt], cls: ast.ClassDef, function: Function, name: str, default: ast.expr | None
) -> list[ast.expr] | None:
    """What the calls of the method `function` of `cls` give its parameter `name`, `default` where they give nothing; None where a
    call may give anything, or none is known."""
    nodes = [each for statement in statements for each in ast.walk(statement)]
    holders = set(_names_of_objects(nodes, cls.name))
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
        of_object = isinstance(func, ast.Attribute) and _last_name(func.value) in {"self", *holders}
        if not (named and of_object) and not (is_called and _last_name(func) in holders):
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


def _names_of_objects(nodes: list[ast.AST], cls: str) -> Iterator[str]:
    """The names, and names of attributes, that objects of the class `cls` get."""
    for each in nodes:
        for target, value in assigned_pairs(each) if isinstance(each, (ast.Assign, ast.AnnAssign)) else ():
            name = _last_name(target)
            if (
                name
                and isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and value.func.id == cls
            ):
                yield name


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_bound_anew(function: Function, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )
