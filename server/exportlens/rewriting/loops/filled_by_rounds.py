"""What names that are None before a loop hold until a round gives them a tensor: zeros in the shape of what the round may give
them, where a flag says that they are not read.

    for t in range(4):                      for t in range(4):
        if seen[t] > 0:                         if last is None:
            if last is not None:                    last = torch.zeros_like(x[t])
                gap = x[t] - last     ->        if seen[t] > 0:
            last = x[t]                             if has_last: ...
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.liveness import certainly_bound_before, exits
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.moved_values import is_moved, written_out
from exportlens.rewriting.memory.effects import kinds_before, repeatable
from exportlens.source.walking import walk

_BEGUN = "  # torch.cond gives a tensor, also where there is none yet"


@dataclass(frozen=True)
class Filler:
    """What `name` is bound to in front of `place`, in each round in which it still is None."""

    name: str
    value: ast.expr
    place: ast.stmt


def filled_by_rounds(
    source: Source,
    function: Function,
    loop: ast.For | ast.While,
    given: dict[str, list[ast.expr]],
    kinds: Kinds,
) -> list[Filler]:
    """How those of the names `given`, each with what the loop binds it to, can begin; in the order in which they do."""
    if not isinstance(loop, ast.For) or loop.orelse or not given:
        return []
    stored = {written_out(each) for values in given.values() for each in values}
    place = _first_place(loop, stored)
    # The first round of an inner loop is as good: all are traced one by one.
    while isinstance(place, ast.For) and not place.orelse and all(_holds(place, {each}) for each in stored):
        loop, place = place, _first_place(place, stored)
    if place is None or not source.begins_line(place):
        return []
    own = set(bound(function.body))
    there = (certainly_bound_before(function, place) & own) - set(given)
    now = kinds_before(function, place, kinds)
    found: list[Filler] = []
    waiting = dict(given)
    while waiting:
        # One that needs no other comes first.
        name, value = next(
            (
                (name, value)
                for name, values in waiting.items()
                if (value := _first(source, loop, name, values, own - there, now)) is not None
            ),
            (None, None),
        )
        if name is None or value is None:
            return found
        del waiting[name]
        there |= {name}
        now.assign(ast.Name(name, ast.Store()), now.of(value))
        found.append(Filler(name, value, place))
    return found


def filled_at(source: Source, fillers: list[Filler], torch: str) -> list[Replacement]:
    """The changes that bind the names."""
    nl, lines = source.newline, []
    for each in fillers:
        indent = source.indent_of(each.place)
        inner = indent + source.indent_unit()
        value = f"{torch}.zeros_like({source.of(each.value)})"
        lines.append(f"if {each.name} is None:{_BEGUN}{nl}{inner}{each.name} = {value}{nl}{indent}")
    if not fillers:
        return []
    begin = source.start(fillers[0].place)
    return [Replacement(begin, begin, "".join(lines))]


def _first_place(loop: ast.For, stored: set[ast.expr]) -> ast.stmt | None:
    """The first statement of the body that binds one of the names, or may leave the round."""
    return next((each for each in loop.body if _holds(each, stored) or exits([each]) != {"falls"}), None)


def _holds(statement: ast.stmt, values: set[ast.expr]) -> bool:
    return any(each in values for each in walk(statement) if isinstance(each, ast.expr))


def _first(
    source: Source, loop: ast.For, name: str, values: list[ast.expr], unbound: set[str], kinds: Kinds
) -> ast.expr | None:
    """The first of `values` that can be computed in each round, where all of them are of its shape."""
    own = [each for each in values if name not in reads(each)]
    others = [each for each in values if name in reads(each)]
    if len({ast.unparse(each) for each in own}) != 1 or any(written_out(each) is not each for each in own):
        return None
    if not all(is_moved(each, name, kinds) for each in others):
        return None
    value = own[0]
    changing = set(bound(loop))
    if reads(value) & unbound or any(_may_not_be_there(each, changing) for each in walk(value)):
        return None
    known = kinds.of(value)
    if known.what != "tensor" or not repeatable(value, kinds) or "\n" in source.of(value):
        return None
    return value


def _may_not_be_there(node: ast.AST, changing: set[str]) -> bool:
    """Whether `node` picks what not every round has, or what is longer in some: `x[t + 1]`, `x[:t]`."""
    return isinstance(node, ast.Subscript) and any(
        isinstance(each, (ast.Slice, ast.BinOp)) and bool(reads(each) & changing) for each in walk(node.slice)
    )
