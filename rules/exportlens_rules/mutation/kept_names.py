"""The names under which a function reaches a list or a dict that the model keeps."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from exportlens.inference.places import ContainerWrite

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def under_one_name(place: ContainerWrite, function: _Function) -> tuple[_Function, ast.AST]:
    """`function` with `self.states` wherever it says `states`, which it binds to that once, or with the parameter of which it does, and
    the node of `place` in it."""
    held = _names_of_kept(place, function)
    if place.owner is None or not held:
        return function, place.node
    copied: dict[int, ast.AST] = {}
    made = copy.deepcopy(function, copied)
    node = copied[id(place.node)]
    assert isinstance(node, ast.AST)
    _OneName(held).visit(made)
    return made, node


def _names_of_kept(place: ContainerWrite, function: _Function) -> dict[str, ast.expr]:
    """The names that are bound once, to what the model keeps or to a parameter, and what that is."""
    bound = [
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    held: dict[str, ast.expr] = {}
    for each in ast.walk(function):
        if not isinstance(each, ast.Assign):
            continue
        value = held.get(each.value.id, each.value) if isinstance(each.value, ast.Name) else each.value
        if _is_kept(value, place.attr) or (
            isinstance(value, ast.Name) and value.id in given and value.id not in bound
        ):
            held |= {
                one.id: value
                for one in each.targets
                if isinstance(one, ast.Name) and bound.count(one.id) == 1 and one.id not in given
            }
    return held


def _is_kept(value: ast.expr, attr: str) -> bool:
    return (
        isinstance(value, ast.Attribute)
        and value.attr == attr
        and isinstance(value.value, ast.Name)
        and value.value.id == "self"
    )


class _OneName(ast.NodeTransformer):
    """Puts what names stand for in their place, and takes away the statements that bind them."""

    def __init__(self, held: dict[str, ast.expr]) -> None:
        self.held = held

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.held or not isinstance(node.ctx, ast.Load):
            return node
        made = copy.deepcopy(self.held[node.id])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if all(isinstance(each, ast.Name) and each.id in self.held for each in node.targets):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)


def updated_items(call: ast.Call) -> Iterator[ast.Subscript]:
    """The items that `self.state.update(h=h, c=c)` sets, as they are read."""
    assert isinstance(call.func, ast.Attribute)
    keys: list[ast.expr] = [ast.Constant(each.arg) for each in call.keywords if each.arg is not None]
    if call.args and isinstance(call.args[0], ast.Dict):
        keys += [each for each in call.args[0].keys if each is not None]
    for key in keys:
        yield ast.Subscript(call.func.value, key, ast.Load())
