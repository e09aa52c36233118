"""A `while` whose first round certainly runs, and that goes on by a number which becomes a tensor in it: that round is written
out before the loop.

    error = 1e9                            error = 1e9
    while error > 1e-3:                    x = step(x)
        x = step(x)               ->       error = change(x)
        error = change(x)                  while error > 1e-3:
                                               x = step(x)
                                               error = change(x)
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from exportlens.inference.values import Const
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.liveness import exits
from exportlens.rewriting.names import bound, reads
from exportlens.rewriting.text import Replacement, Source, replaced

_MOST_COPIED = 16
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}


def first_round_out(source: Source, loop: ast.While, kinds: Kinds) -> tuple[Source, ast.While, Kinds] | None:
    """The text with the first round of `loop` before it, the loop of it and the kinds just before that; None where it is not
    certain to run, or where that makes no number a tensor."""
    size = sum(isinstance(each, ast.stmt) for one in loop.body for each in ast.walk(one))
    if loop.orelse or exits(loop.body) != {"falls"} or not source.begins_line(loop) or size > _MOST_COPIED:
        return None
    after = kinds.copy()
    after.run(loop.body)
    becomes = [
        name
        for name in reads(loop.test) & set(bound(loop.body))
        if _what(kinds, name) == "number" and _what(after, name) == "tensor"
    ]
    # What makes a number a tensor in the first round would write that in place in the others.
    augmented = [
        ast.unparse(each.target)
        for one in loop.body
        for each in ast.walk(one)
        if isinstance(each, ast.AugAssign)
    ]
    in_place = any(_what(kinds, name) == "number" and _what(after, name) == "tensor" for name in augmented)
    if not becomes or in_place or not _holds(loop.test, kinds):
        return None
    indent = source.indent_of(loop)
    head = source.block(loop.body, indent).removeprefix(indent) + source.newline + indent
    begin = source.start(loop)
    changed = Source(replaced(source.text, [Replacement(begin, begin, head)]))
    loops = (each for each in ast.walk(changed.tree) if isinstance(each, ast.While))
    return changed, next(each for each in loops if changed.start(each) == begin + len(head)), after


def _what(kinds: Kinds, name: str) -> str:
    kind = kinds.names.get(name)
    return kind.what if kind is not None else "unknown"


def _holds(test: ast.expr, kinds: Kinds) -> bool:
    """Whether `test` holds for numbers that are known."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(_holds(each, kinds) for each in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    compare = _COMPARED.get(type(test.ops[0]))
    values = [kinds.of(each).value for each in (test.left, test.comparators[0])]
    numbers = [each.value for each in values if isinstance(each, Const) and type(each.value) in (int, float)]
    return compare is not None and len(numbers) == 2 and compare(*numbers)
