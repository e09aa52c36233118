"""The names under which a function reaches a list or a dict that the model keeps."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from exportlens.inference.places import ContainerWrite

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def under_one_name(place: ContainerWrite, function: _Function) -> tuple[_Function, ast.AST]:
    """`function` with `self.states` wherever it says `states`, which it binds to that once, and the node of `place` in it."""
    names = {
        name
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and _is_kept(each.value, place.attr)
        for name in (target.id for target in each.targets if isinstance(target, ast.Name))
    }
    bound = [
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    names = {name for name in names if bound.count(name) == 1}
    if place.owner is None or not names:
        return function, place.node
    copied: dict[int, ast.AST] = {}
    made = copy.deepcopy(function, copied)
    node = copied[id(place.node)]
    assert isinstance(node, ast.AST)
    _Attributes(place.attr, names).visit(made)
    return made, node


def _is_kept(value: ast.expr, attr: str) -> bool:
    return (
        isinstance(value, ast.Attribute)
        and value.attr == attr
        and isinstance(value.value, ast.Name)
        and value.value.id == "self"
    )


class _Attributes(ast.NodeTransformer):
    """Puts `self.attr` in the place of names that stand for it, and takes away the statements that bind them."""

    def __init__(self, attr: str, names: set[str]) -> None:
        self.attr, self.names = attr, names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names or not isinstance(node.ctx, ast.Load):
            return node
        made = ast.Attribute(ast.Name("self", ast.Load()), self.attr, ast.Load())
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if _is_kept(node.value, self.attr) and all(
            isinstance(each, ast.Name) and each.id in self.names for each in node.targets
        ):
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
