"""Ranges as they are written: `range(start, stop, step)` in ints."""

from __future__ import annotations

import ast


def bounds_of(call: ast.expr) -> tuple[int, ast.expr, int] | None:
    """Where `range(...)` starts, what it stops before, and its step; None where start or step are no written ints."""
    if not isinstance(call, ast.Call) or call.keywords or not 1 <= len(call.args) <= 3:
        return None
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    if len(call.args) == 1:
        return 0, call.args[0], 1
    start = written_int(call.args[0])
    step = written_int(call.args[2]) if len(call.args) == 3 else 1
    return None if start is None or not step else (start, call.args[1], step)


def written_int(node: ast.expr) -> int | None:
    """The int that `node` is, written out."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None
