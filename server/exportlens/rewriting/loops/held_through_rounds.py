"""Floats and bools that inner loops on tensor data change, where the rounds of a loop are calls of a function: tensors hold them.

Read out of a tensor in one round, they are numbers from data in the next, and its torch.cond takes in none; ints are taken (measured
on torch 2.13, in eager and in both modes).
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import live_before
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.held_in_loops import bound_values, held, is_number
from exportlens.rewriting.memory.effects import visit
from exportlens.source.walking import walk

_NOT_TAKEN_IN = ("float", "bool")


def held_through_rounds(
    source: Source, loop: ast.For, kinds: Kinds, torch: str
) -> tuple[Source, ast.For] | None:
    """The text where tensors hold those numbers all through `loop`, and the loop of it; None where there are none. `kinds`, those
    before the loop, get to know the tensors. Raises Refused where one cannot be held."""
    function = source.enclosing_function(loop)
    changed = _changed_by_data(source, loop, kinds, torch)
    if function is None or not changed:
        return None
    found = held(source, function, loop, loop, changed, kinds, torch, _NOT_TAKEN_IN)
    entering = live_before(loop.body, frozenset(), function)
    after = kinds.copy()
    after.run([loop])
    for name in changed:
        now, later = kinds.names.get(name), after.names.get(name)
        if name in entering and is_number(now) and any(each and each.type != "int" for each in (now, later)):
            raise Refused(
                f"`{name}` is a number that an inner loop on tensor data changes, and the next round's torch.cond takes in none"
            )
    return found


def _changed_by_data(source: Source, loop: ast.For, kinds: Kinds, torch: str) -> list[str]:
    """The numbers that loops on tensor data inside of `loop` bind, and those that it computes of them."""
    found: dict[str, None] = {}

    def see(node: ast.stmt, now: Kinds) -> None:
        if isinstance(node, ast.While):
            by_data = Predicates(source, now, torch).from_data(node.test)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            by_data = any(now.of(each).what in ("scalar", "tensor") for each in node.iter.args)
        else:
            return
        if by_data:
            found.update(dict.fromkeys(bound(node.body)))

    inside = kinds.copy()
    inside._assign_iteration(loop)
    visit(loop.body, inside, see)
    count = -1
    while len(found) > count:
        count = len(found)
        for each in (one for statement in loop.body for one in walk(statement) if isinstance(one, ast.stmt)):
            found |= {name: None for name, value in bound_values(each) if reads(value) & found.keys()}
    return [name for name in found if is_number(kinds.names.get(name))]
