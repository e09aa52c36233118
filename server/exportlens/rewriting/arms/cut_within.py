"""Rows of which data says how many there are, cut by a number from data inside of an arm: `x[:n]`.

Measured on torch 2.13: where gradients are recorded and there are no rows, the program fails in such an arm ("Pending unbacked
symbols"), as the slice of nothing has no size that data says. A mask of the rows below `n` has.
"""

from __future__ import annotations

import ast

from exportlens.inference.values import Const
from exportlens.rewriting.code.liveness import becoming_arms
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.number_types import is_size, read_out_of
from exportlens.rewriting.memory.effects import kinds_before, own_expressions, visit
from exportlens.rewriting.sizes.bounded_writes import never_negative


def cut_within(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node` select by masks, and `node` of it; None where they cut no such rows."""
    statements = becoming_arms(source, node)
    swaps: dict[int, Replacement] = {}

    def see(statement: ast.stmt, now: Kinds) -> None:
        for each in own_expressions(statement) if statement is not node else ():
            text = _selected(source, each, now, torch) if isinstance(each, ast.Subscript) else None
            if text is not None:
                swaps[source.start(each)] = source.swap(each, text)

    visit(statements, kinds.copy(), see)
    if not swaps:
        return None
    changed = Source(replaced(source.text, swaps.values()))
    return changed, changed.branch_at(source.start(node))


def _selected(source: Source, node: ast.Subscript, kinds: Kinds, torch: str) -> str | None:
    """`x[torch.arange(x.shape[0]) < n]` for `x[:n]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    first, base = parts[0], dotted(node.value)
    if base is None or not isinstance(node.ctx, ast.Load) or not length_from_data(kinds.of(node.value)):
        return None
    if not isinstance(first, ast.Slice) or first.lower is not None or first.step is not None:
        return None
    if first.upper is None or dotted(first.upper) is None:
        return None
    bound = kinds.of(first.upper)
    if bound.what != "scalar" or bound.type != "int":
        return None
    end, rows = source.of(first.upper), f"{torch}.arange({base}.shape[0], device={base}.device)"
    if not _counts(source, first.upper, kinds):
        # One below zero counts from the end.
        held = f"{torch}.full((), {end}, device={base}.device)"
        end = f"{held} + {base}.shape[0] * ({held} < 0)"
    rows = f"{rows} < {end}"
    others = ", ".join(map(source.of, parts[1:]))
    return f"{base}[{rows}][:, {others}]" if others else f"{base}[{rows}]"


def _counts(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` counts something: a size, or the smallest or the largest of such, by the one name that it has."""
    if isinstance(node, ast.Name):
        function = source.enclosing_function(node)
        stores = [
            each
            for each in ast.walk(function or node)
            if isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
        ]
        if function is None or len(stores) != 1 or node.id in {each.arg for each in arguments(function.args)}:
            return False
        given = source.parents[stores[0]]
        if not isinstance(given, ast.Assign) or given.targets != stores:
            return False
        return _counts(source, given.value, kinds_before(function, given, kinds))
    if isinstance(node, ast.Call) and dotted(node.func) in ("int", "min", "max") and not node.keywords:
        return all(_counts(source, each, kinds) for each in node.args)
    read_out = read_out_of(node)
    return (
        is_size(node)
        or never_negative(node if read_out is None else read_out, kinds)
        or _is_option(node, kinds)
    )


def _is_option(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is a setting that is known to be no less than zero."""
    value = kinds.of(node).value
    known = isinstance(value, Const) and isinstance(value.value, int)
    return known and isinstance(value, Const) and value.value >= 0
