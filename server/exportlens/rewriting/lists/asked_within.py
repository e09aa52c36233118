"""What a loop asks of the list that it fills, where the rows of a tensor stand for the list: how many items it has, and the last one.

if not kept or (x - kept[-1]).norm() > 1:    ->    if not kept_count > 0 or (x - kept_rows[...]).norm() > 1:
    kept.append(x)
"""

from __future__ import annotations

import ast
from typing import Protocol

from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.item_counts import Counts, is_asked
from exportlens.rewriting.lists.written_items import is_handed_to_writer, writes_items
from exportlens.source.walking import walk


class FilledList(Protocol):
    """The list `name` that `start` makes with the items `first`, and that `appends` in `loop` make longer."""

    source: Source
    function: Function
    loop: ast.For | ast.While
    appends: list[ast.stmt]
    name: str
    start: ast.Assign | ast.AnnAssign
    first: list[ast.expr]
    kinds: Kinds

    def is_of_one_shape(self) -> bool: ...


def asked_within(filled: FilledList, count: str, rows: str, number: str) -> list[Replacement] | None:
    """What changes between the start of the list and the end of the loop where the rows are in `rows`, as many as `count` says,
    and the items are of the type `number` if any; None where more is done with the list."""
    source, name, swaps = filled.source, filled.name, list[Replacement]()
    own = {
        id(each.value.func.value)
        for each in filled.appends
        if isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and isinstance(each.value.func, ast.Attribute)
    }
    counts = Counts(source, name, filled.start, filled.appends, len(filled.first), None, filled.kinds)
    begin, end = source.end(filled.start), source.end(filled.loop)
    for each in walk(filled.function):
        if not isinstance(each, ast.Name) or each.id != name or id(each) in own:
            continue
        if not begin <= source.start(each) < end:
            continue
        parent = source.parents[each]
        if source.start(each) < source.start(filled.loop) or _is_deferred(source, each, filled.loop):
            return None
        if is_asked(source, each):
            swaps.append(counts.swap(each, count, 0))
        elif isinstance(parent, ast.Call) and dotted(parent.func) == "len" and len(parent.args) == 1:
            if not isinstance(source.parents[parent], ast.Compare):
                return None
            swaps.append(source.swap(parent, count))
        elif number in ("", "int") and _is_last(filled, each, parent, counts, number):
            taken = "item()" if number else "squeeze(0)"
            swaps.append(source.swap(parent, f"{rows}[({count} - 1).reshape(1)].{taken}"))
        else:
            return None
    return swaps


def _is_last(filled: FilledList, use: ast.Name, parent: ast.AST, counts: Counts, number: str) -> bool:
    """Whether the last item is read there, which the list has for sure, and nothing writes it in place."""
    if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Load):
        return False
    if ast.unparse(parent.slice) != "-1" or parent.value is not use:
        return False
    if not number and not filled.is_of_one_shape():
        return False
    if len(filled.first) + counts.certain(use) < 1 and counts.least(use) < 1:
        return False
    if is_handed_to_writer(filled.source, parent, filled.kinds):
        return False
    return not writes_items(filled.function, filled.name)


def _is_deferred(source: Source, use: ast.Name, loop: ast.AST) -> bool:
    """Whether `use` runs later than it stands, or never."""
    for outer in source.ancestors(use):
        if outer is loop:
            return False
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)):
            return True
    return True
