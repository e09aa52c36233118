"""Loops in a plainer form: one over a range in reverse runs down a range of its own, `range(n - 1, -1, -1)` for `reversed(range(n))`,
and the `else` of one that nothing leaves stands behind it."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.ranges import written_int
from exportlens.rewriting.code.text import Replacement, Source, replaced

Loop = ast.For | ast.While


def running_down(source: Source, loop: Loop) -> tuple[Source, Loop] | None:
    """The text with `loop` over a range that runs down, and the loop; None where it is over anything else."""
    reverse = loop.iter if isinstance(loop, ast.For) else None
    ranged = reverse.args[0] if isinstance(reverse, ast.Call) and _is_call(reverse, "reversed") else None
    if (
        reverse is None
        or not isinstance(ranged, ast.Call)
        or not _is_call(ranged, "range")
        or len(ranged.args) > 2
    ):
        return None
    bounds = ranged.args
    last = _one_less(source, bounds[-1])
    before = "-1" if len(bounds) == 1 else _one_less(source, bounds[0])
    begin = source.start(loop)
    changed = Source(replaced(source.text, [source.swap(reverse, f"range({last}, {before}, -1)")]))
    loops = (each for each in ast.walk(changed.tree) if isinstance(each, ast.For))
    return changed, next(each for each in loops if changed.start(each) == begin)


def without_else(source: Source, loop: Loop) -> tuple[Source, Loop] | None:
    """The text with the `else` of `loop`, which has no `break`, behind it, and the loop; None where it has none."""
    if not loop.orelse or "breaks" in exits(loop.body) or not source.begins_line(loop):
        return None
    begin, end = source.span([loop.body[-1]])[1], source.span([loop])[1]
    text = source.newline + source.block(loop.orelse, source.indent_of(loop))
    comments = source.comments_between(begin, source.span(loop.orelse)[0])
    lines = "".join(f"{source.newline}{source.indent_of(loop)}{each}" for each in comments)
    start = source.start(loop)
    changed = Source(replaced(source.text, [Replacement(begin, end, lines + text)]))
    loops = (each for each in ast.walk(changed.tree) if isinstance(each, (ast.For, ast.While)))
    return changed, next(each for each in loops if changed.start(each) == start)


def _one_less(source: Source, number: ast.expr) -> str:
    written = written_int(number)
    return f"{primary(source.of(number))} - 1" if written is None else str(written - 1)


def _is_call(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name and bool(node.args) and not node.keywords
