"""Afterwards: whose memory is written in place once a statement has run, in its function and in those that call it.

What torch.cond and while_loop give has memory of its own: where the code before gave a tensor that someone else holds
too, a later write would no longer reach both.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.callers import callers_write
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kind import LOCAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import visit
from exportlens.rewriting.memory.watching import Watch


@dataclass(frozen=True, slots=True)
class Later:
    """Memory (roots, and names of which none are known) that is written in place, and that is returned, once a
    statement has run; and what is written that is not only a list of which an item is set."""

    written: frozenset[str]
    returned: frozenset[str]
    in_tensors: frozenset[str]


def afterwards(
    source: Source, last: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef, kinds: Kinds
) -> Later:
    """What happens to memory once `last` has run, `kinds` being those behind it; loops around it are followed for
    another round, and the callers in the file for what they write of what they are given."""
    now = kinds.copy()
    watch = Watch()
    statement: ast.stmt = last
    while True:
        block, index = source.block_of(statement)
        visit(block[index + 1 :], now, watch.see)
        owner = source.parents[statement]
        while not isinstance(owner, ast.stmt):
            owner = source.parents[owner]
        if owner is function:
            break
        if isinstance(owner, (ast.For, ast.While)):
            visit([owner], now, watch.see)
        statement = owner
    outside = {each for each in watch.returned if not each.startswith(LOCAL)}
    if outside and callers_write(source, function, kinds):
        watch.written |= outside
        watch.in_tensors |= outside
    return Later(frozenset(watch.written), frozenset(watch.returned), frozenset(watch.in_tensors))
