"""Arms that are never taken, as the test asks whether there is something where None is."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.rewriting.code.names import is_none
from exportlens.rewriting.kinds.kind import Kind


def untaken(test: ast.expr | None, names: Mapping[str, Kind]) -> int | None:
    """Which arm of an `if` on `test` is never taken, 0 or 1; None where either may be, as far as names are known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        arm = untaken(test.operand, names)
        return None if arm is None else 1 - arm
    if isinstance(test, ast.Name):
        return 0 if _is_nothing(test, names) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not is_none(test.comparators[0]):
        return None
    if not _is_nothing(test.left, names):
        return None
    return {ast.Is: 1, ast.IsNot: 0}.get(type(test.ops[0]))


def _is_nothing(node: ast.expr, names: Mapping[str, Kind]) -> bool:
    known = names.get(node.id) if isinstance(node, ast.Name) else None
    return known is not None and known.what == "none"
