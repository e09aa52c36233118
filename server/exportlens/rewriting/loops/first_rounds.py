"""A `while` whose first round certainly runs, and that goes on by a number which becomes a tensor in it, or first binds what is
read behind it: that round is written out before the loop.

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
from collections.abc import Callable, Iterator
from typing import Any

from exportlens.inference.values import Const
from exportlens.rewriting.code.liveness import Liveness, always_bound, certainly_bound_before, exits
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_MOST_COPIED = 40
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
# What may not read all of its parts.
_UNSURE = (
    ast.BoolOp,
    ast.IfExp,
    ast.Compare,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
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
        if what(kinds, name) == "number" and what(after, name) == "tensor"
    ]
    unsure = left_unbound(source, loop)
    if unsure and not unsure <= always_bound(loop.body):
        return None
    runs = holds(loop.test, kinds)
    # Without a first round Python raises where it reads what no round has bound.
    if not (unsure or becomes) or not (runs or any(is_read_behind(source, loop, name) for name in unsure)):
        return None
    summed = _summed(loop, kinds, after)
    if summed is None:
        return None
    begin = source.start(loop)
    if summed:
        swaps = [source.swap(each, f"{source.of(each.target)} = {source.computed(each)}") for each in summed]
        source = Source(replaced(source.text, swaps))
        loop = _loop_at(source, begin)
    indent = source.indent_of(loop)
    head = source.block(loop.body, indent).removeprefix(indent) + source.newline + indent
    changed = Source(replaced(source.text, [Replacement(begin, begin, head)]))
    return changed, _loop_at(changed, begin + len(head)), after


def left_unbound(source: Source, loop: ast.For | ast.While) -> set[str]:
    """What only the loop binds, and is read behind it."""
    function = source.enclosing_function(loop)
    if function is None:
        return set()
    certain = certainly_bound_before(function, loop)
    after = Liveness(function).live_after(loop)
    return {name for name in bound(loop.body) if name in after and name not in certain}


def is_read_behind(source: Source, loop: ast.While, name: str) -> bool:
    """Whether what follows the loop certainly reads `name` as the loop left it."""
    block, index = source.block_of(loop)
    for each in block[index + 1 :]:
        if not isinstance(each, _SIMPLE):
            return False
        uses = (one for one in walk(each) if isinstance(one, ast.Name) and one.id == name)
        loads = [one for one in uses if isinstance(one.ctx, ast.Load)]
        if any(not any(isinstance(outer, _UNSURE) for outer in _around(source, one, each)) for one in loads):
            return True
        if isinstance(each, ast.Return) or name in bound(each):
            return False
    return False


def _around(source: Source, node: ast.AST, statement: ast.stmt) -> Iterator[ast.AST]:
    for outer in source.ancestors(node):
        if outer is statement:
            return
        yield outer


def _loop_at(source: Source, begin: int) -> ast.While:
    loops = (each for each in ast.walk(source.tree) if isinstance(each, ast.While))
    return next(each for each in loops if source.start(each) == begin)


def _summed(loop: ast.While, kinds: Kinds, after: Kinds) -> list[ast.AugAssign] | None:
    """The `total += t` that make a number a tensor in the first round, and would write it in place in the others; None where
    more than that reads it, which may hold the same tensor."""
    found = [
        each
        for one in loop.body
        for each in ast.walk(one)
        if isinstance(each, ast.AugAssign)
        and what(kinds, ast.unparse(each.target)) == "number"
        and what(after, ast.unparse(each.target)) == "tensor"
    ]
    names = {ast.unparse(each.target) for each in found}
    return (
        None if names & reads([loop.test, *(part for one in loop.body for part in ast.walk(one))]) else found
    )


def what(kinds: Kinds, name: str) -> str:
    """What `name` holds, "number" or "tensor" and so on."""
    kind = kinds.names.get(name)
    return kind.what if kind is not None else "unknown"


def holds(test: ast.expr, kinds: Kinds) -> bool:
    """Whether `test` holds for numbers that are known."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(holds(each, kinds) for each in test.values)
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    known = kinds.of(test.operand if isinstance(test, ast.UnaryOp) and negated else test).value
    if isinstance(known, Const) and type(known.value) is bool:
        return known.value is not negated
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    compare = _COMPARED.get(type(test.ops[0]))
    values = [kinds.of(each).value for each in (test.left, test.comparators[0])]
    numbers = [each.value for each in values if isinstance(each, Const) and type(each.value) in (int, float)]
    return compare is not None and len(numbers) == 2 and compare(*numbers)
