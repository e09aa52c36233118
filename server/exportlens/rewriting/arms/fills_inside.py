"""Writes of a number to a slice inside of an arm, where a number from data bounds the slice: `x[:, n:] = 0`.

Measured on torch 2.13: outside of branches such a write is traced. In an arm of torch.cond it is not where gradients are
recorded ("Pending unbacked symbols"); a fill where `torch.arange` is within the bounds is.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import becoming_arms
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import visit

_UNKNOWN = Kind("unknown")


def filled_within(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the arms of `node` fill by masks, and `node` of it; None where they write to no such slice."""
    taken = every_name(source.tree)
    statements = becoming_arms(source, node)
    anew = {each for each in bound(statements) if kinds.names.get(each, _UNKNOWN).what != "scalar"}
    swaps: dict[int, Replacement] = {}

    def see(statement: ast.stmt, now: Kinds) -> None:
        if isinstance(statement, ast.Assign) and source.begins_line(statement):
            text = _fill(source, statement, anew, now, torch, taken)
            if text is not None:
                swaps[source.start(statement)] = source.swap(statement, text)

    visit(statements, kinds.copy(), see)
    if not swaps:
        return None
    changed = Source(replaced(source.text, swaps.values()))
    return changed, changed.branch_at(source.start(node))


def _fill(
    source: Source, statement: ast.Assign, anew: set[str], kinds: Kinds, torch: str, taken: set[str]
) -> str | None:
    target = statement.targets[0]
    if (
        len(statement.targets) != 1
        or not isinstance(target, ast.Subscript)
        or not _is_number(statement.value, kinds)
    ):
        return None
    base = dotted(target.value)
    if base is None or kinds.of(target.value).what != "tensor" or base in anew:
        return None
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    ints = [index for index, part in enumerate(parts) if _is_int(part, kinds)]
    places = [index for index, part in enumerate(parts) if not _is_whole(part) and index not in ints]
    if len(places) != 1 or not isinstance(parts[places[0]], ast.Slice):
        return None
    at = places[0]
    part = parts[at]
    assert isinstance(part, ast.Slice)
    ends = [each for each in (part.lower, part.upper) if each is not None]
    if part.step is not None or not any(_from_data(each, kinds) for each in ends):
        return None
    if not all(_from_data(each, kinds) or _is_index(each) for each in ends):
        return None
    dots = [index for index, each in enumerate(parts) if isinstance(each, ast.Constant) and each.value is ...]
    if ints and dots:
        return None
    if ints:
        # One int takes its dimension away.
        picked = [
            source.of(each) if index in ints else ":" for index, each in enumerate(parts[: ints[-1] + 1])
        ]
        base = f"{base}[{', '.join(picked)}]"
    dim = at - len(parts) if dots and dots[0] < at else at - sum(index < at for index in ints)
    size = f"{base}.shape[{dim}]"
    view = base if dim == -1 else f"{base}.movedim({dim}, -1)"
    name = fresh("places", taken)
    lines = [f"{name} = {torch}.arange({size}, device={base}.device)"]
    conditions = []
    for sign, end in ((">=", part.lower), ("<", part.upper)):
        if end is None:
            continue
        text = source.of(end)
        if _from_data(end, kinds):
            held = fresh("bound", taken)
            lines.append(f"{held} = {torch}.full((), {text}, device={base}.device)")
            # One below zero counts from the end.
            text = f"{held} + {size} * ({held} < 0)"
        conditions.append(f"{name} {sign} {text}")
    inside = conditions[0] if len(conditions) == 1 else " & ".join(f"({each})" for each in conditions)
    lines.append(f"{view}.masked_fill_({inside}, {source.of(statement.value)})")
    return f"{source.newline}{source.indent_of(statement)}".join(lines)


def _is_whole(part: ast.expr) -> bool:
    """`:` and `...`."""
    if isinstance(part, ast.Slice):
        return part.lower is None and part.upper is None and part.step is None
    return isinstance(part, ast.Constant) and part.value is ...


def _is_number(node: ast.expr, kinds: Kinds) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    constant = isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
    return constant or (kinds.of(node).what == "number" and kinds.of(node).type in ("int", "float"))


def _is_int(node: ast.expr, kinds: Kinds) -> bool:
    kind = kinds.of(node)
    return not isinstance(node, ast.Slice) and kind.what in ("number", "size") and kind.type == "int"


def _is_index(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0


def _from_data(node: ast.expr, kinds: Kinds) -> bool:
    kind = kinds.of(node)
    return kind.what == "scalar" and kind.type == "int"
