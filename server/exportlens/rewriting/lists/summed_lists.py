"""Lists that a loop over found rows fills, and of which only the sum, the mean or the number is asked: the loop adds up.

    losses = []                               losses_count = torch.full((), 0)
    for c in torch.unique(y):                 losses_total = torch.zeros(())
        losses.append(f(x, c))       ->       for c in torch.unique(y):
    return torch.stack(losses).mean()             losses_total = losses_total + f(x, c)
                                                  losses_count = losses_count + 1
                                              return losses_total / losses_count

No program has a list that is as long as data says; tensors of one number are carried through while_loop.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import appended_to, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.list_uses import ListUses
from exportlens.rewriting.lists.started_lists import list_of, started_apart, zero_of


def with_lists_summed(
    source: Source, loop: ast.For, kinds: Kinds, torch: str
) -> tuple[Source, ast.For] | None:
    """The text where `loop` adds up what it appended to lists, and the loop of it; None where it appends to none, or where more
    is done with one."""
    source, loop = started_apart(source, loop)
    function, begin = source.enclosing_function(loop), source.start(loop)
    nodes = [each for one in loop.body for each in ast.walk(one) if isinstance(each, ast.stmt)]
    appends = [each for each in nodes if appended_to(each) is not None]
    if function is None or not source.begins_line(loop) or not all(map(source.begins_line, appends)):
        return None
    if not appends or len({appended_to(each) for each in appends}) != len(appends):
        return None
    taken = every_name(source.tree)
    swaps: list[Replacement] = []
    starts = ""
    for append in appends:
        found = list_of(source, function, append, kinds)
        zero = None if found is None else zero_of(found, kinds, torch, loop.body)
        if found is None or zero is None or source.end(found.start) > begin:
            return None
        total, count = fresh(f"{found.name}_total", taken), fresh(f"{found.name}_count", taken)
        used = ListUses(source, function, torch, found, append, kinds.functions, total, count, f"{count} > 0")
        uses = used.uses()
        if uses is None or any(each.start < source.span([loop])[1] for each in uses):
            return None
        line = f"{source.newline}{source.indent_of(append)}"
        simple = isinstance(found.value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        value = source.of(found.value) if simple else f"({source.of(found.value)})"
        added = f"{total} = {total} + {value}"
        swaps += [
            source.swap(found.start, f"{count} = {torch}.full((), 0)"),
            source.swap(append, f"{added}{line}{count} = {count} + 1"),
            *uses,
        ]
        starts += f"{total} = {zero}{source.newline}{source.indent_of(loop)}"
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= begin)
    changed = Source(replaced(source.text, [*swaps, Replacement(begin, begin, starts)]))
    offset = begin + moved + len(starts)
    return next(
        (
            (changed, each)
            for each in ast.walk(changed.tree)
            if isinstance(each, ast.For) and changed.start(each) == offset
        ),
        None,
    )
