"""How many dimensions a name certainly has behind a statement or a test that asks for its sizes, as it is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_COUNTS = frozenset({"dim", "ndimension"})


def by_unpacking(targets: list[ast.expr], value: ast.expr) -> tuple[str, int] | None:
    """`b, n = x.shape`: `x` has as many dimensions as there are targets, or the assignment raises; None for anything else."""
    target = targets[0]
    if not isinstance(target, (ast.Tuple, ast.List)) or any(
        isinstance(each, ast.Starred) for each in target.elts
    ):
        return None
    name = _asked(value)
    bound = {each.id for one in targets for each in ast.walk(one) if isinstance(each, ast.Name)}
    return None if name is None or name in bound else (name, len(target.elts))


def by_test(test: ast.expr, positive: bool) -> Iterator[tuple[str, int]]:
    """The names whose number of dimensions `test` tells, where it came out as `positive`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from by_test(test.operand, not positive)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is positive:
            anew = {each.target.id for each in ast.walk(test) if isinstance(each, ast.NamedExpr)}
            for value in test.values:
                yield from (each for each in by_test(value, positive) if each[0] not in anew)
    elif (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq if positive else ast.NotEq)
    ):
        sides = (test.left, test.comparators[0])
        for one, other in (sides, sides[::-1]):
            name = _counted(one)
            if name is not None and isinstance(other, ast.Constant) and type(other.value) is int:
                yield name, other.value


def _counted(node: ast.expr) -> str | None:
    """The name whose dimensions `node` counts: `x.ndim`, `x.dim()`, `len(x.shape)`."""
    if isinstance(node, ast.Attribute) and node.attr == "ndim" and isinstance(node.value, ast.Name):
        return node.value.id
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    func = node.func
    if isinstance(func, ast.Name) and func.id == "len" and len(node.args) == 1:
        return _asked(node.args[0])
    if isinstance(func, ast.Attribute) and func.attr in _COUNTS and not node.args:
        return func.value.id if isinstance(func.value, ast.Name) else None
    return None


def _asked(node: ast.expr) -> str | None:
    """The name all of whose sizes `node` is: `x.shape`, `x.size()`."""
    wanted = "shape"
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node, wanted = node.func, "size"
    if isinstance(node, ast.Attribute) and node.attr == wanted and isinstance(node.value, ast.Name):
        return node.value.id
    return None
