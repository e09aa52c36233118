"""Points: pairs of positions, as a click or a centre is, whose parts are most likely single numbers."""

from __future__ import annotations

import ast
import re

# What one place in a picture, a grid or a table is called. Tensors of edges and of several places have other names, which
# are mostly plural; nothing else tells a pair of numbers from a pair of index tensors.
_POINT = re.compile(
    r"(?:\w+_)?(?:click|point|position|pos|coord|coordinate|center|centre|location|loc|cell|pixel|cursor|peak|corner|xy|yx|seed)"
)
# What its parts are called: `y`, `cx`, `x0`, `top_y`.
_COORDINATE = re.compile(r"(?:\w+_)?[cp]?[xyz]\d?(?:_\w+)?")


def is_point(name: str) -> bool:
    """Whether `name` is that of one place."""
    return _POINT.fullmatch(name) is not None


def unpacks_point(node: ast.Assign) -> bool:
    """`y, x = click`, `cy, cx = center`: the parts of one place, as the one name or the others say."""
    target = node.targets[0]
    if not (len(node.targets) == 1 and isinstance(target, ast.Tuple) and isinstance(node.value, ast.Name)):
        return False
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    return len(names) == len(target.elts) and (
        is_point(node.value.id) or all(map(_COORDINATE.fullmatch, names))
    )


def is_part(node: ast.expr) -> bool:
    """`click[0]`"""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and is_point(node.value.id)
        and isinstance(node.slice, ast.Constant)
        and type(node.slice.value) is int
    )
