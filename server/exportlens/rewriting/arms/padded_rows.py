"""Rows of which data says how many there are, padded in an arm of torch.cond.

Measured on torch 2.13: where gradients are recorded eager's torch.cond traces the backward of its arms, too, and that of `F.pad`
with a constant asks for the sizes as numbers. `torch.cat` with zeros does the same without.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.rewriting.code.text import Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before, visit

_PAD = "torch.nn.functional.pad"


def padded_by_zeros(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """`torch.cat([w, w.new_zeros(size - n)], -1)` for `F.pad(w, (0, size - n))` in `node` and behind it, `n` being a number from data:
    what fills up to a size is never less than nothing."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    swaps: list[Replacement] = []
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and source.start(call) >= source.start(node) and call.args:
            text = _by_zeros(
                source, call, kinds_before(function, source.enclosing_statement(call), kinds), torch
            )
            swaps += [source.swap(call, text)] if text is not None else []
    return read_again(replaced(source.text, swaps), source.start(node)) if swaps else None


def _by_zeros(source: Source, call: ast.Call, kinds: Kinds, torch: str) -> str | None:
    sizes = _sizes(call)
    if not _pads(call, kinds) or sizes is None or not isinstance(call.args[0], ast.Name):
        return None
    counted = len(sizes) == 2 and any(kinds.of(each).what == "scalar" for each in sizes)
    if not counted and not _is_picked(call.args[0], kinds):
        return None
    if not all(_is_length(each) or (counted and _fills_up(each, kinds)) for each in sizes):
        return None
    return _joined(call.args[0].id, sizes, source.of, kinds.of(call.args[0]).rank, torch)


def _sizes(call: ast.Call) -> list[ast.expr] | None:
    """The sizes of `F.pad(x, sizes)`, which are written one by one; None where other than zeros are put there."""
    named = {each.arg: each.value for each in call.keywords}
    pad = named.get("pad", call.args[1] if len(call.args) > 1 else None)
    value = named.get("value", call.args[3] if len(call.args) > 3 else ast.Constant(0))
    if not (isinstance(value, ast.Constant) and value.value in (0, None)):
        return None
    return pad.elts if call.args and isinstance(pad, (ast.Tuple, ast.List)) else None


def _joined(
    rows: str, sizes: list[ast.expr], text: Callable[[ast.expr], str], rank: int | None, torch: str
) -> str | None:
    """The call that joins `rows` with zeros in the one dimension in which `sizes` are not nothing; None where there are more."""
    pairs = [sizes[each : each + 2] for each in range(0, len(sizes), 2)]
    padded = [number for number, pair in enumerate(pairs) if not all(map(_is_nothing, pair))]
    if len(padded) != 1 or len(pairs[-1]) != 2:
        return None
    (number,) = padded
    behind = f", *{rows}.shape[-{number}:]" if number else ""
    before, after = pairs[number]

    def zeros(size: ast.expr) -> str:
        one = rank == 1 and not number
        shape = text(size) if one else f"(*{rows}.shape[:-{number + 1}], {text(size)}{behind})"
        return f"{rows}.new_zeros({shape})"

    parts = [zeros(before)] if not _is_nothing(before) else []
    parts += [rows, *([zeros(after)] if not _is_nothing(after) else [])]
    return f"{torch}.cat([{', '.join(parts)}], -{number + 1})"


def by_zeros_in_helper(call: ast.Call, torch: str) -> str | None:
    """The same for a call in a function that an arm calls, whose sizes are constants."""
    sizes = _sizes(call)
    if sizes is None or not isinstance(call.args[0], ast.Name) or not all(map(_is_length, sizes)):
        return None
    return _joined(call.args[0].id, sizes, ast.unparse, None, torch)


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _fills_up(node: ast.expr, kinds: Kinds) -> bool:
    """`x.size(0) - n`"""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return False
    return kinds.of(node.left).what in ("size", "number") and kinds.of(node.right).what == "scalar"


def refuse_padded_rows(source: Source, statements: Sequence[ast.stmt], kinds: Kinds) -> None:
    """Refuse `statements`, an arm, that pad rows which a mask picks, themselves or in a function that they call."""

    def see(statement: ast.stmt, now: Kinds) -> None:
        if hasattr(statement, "body"):
            return
        for call in ast.walk(statement):
            if not isinstance(call, ast.Call):
                continue
            given = [*call.args, *(each.value for each in call.keywords)]
            rows = next((each for each in given if _is_picked(each, now)), None)
            if rows is None:
                continue
            inside = [each for each in _calls_in(call, now, set()) if _pads(each[1], now)]
            if _pads(call, now) or not all(_is_left_to_fix(*each, now) for each in inside):
                raise Refused(
                    f"`{source.of(call.func)}` pads `{source.of(rows)}`, of which data says how many there are: torch.cond "
                    "cannot trace the gradient of F.pad there. Write torch.cat with zeros instead"
                )

    visit(statements, kinds.copy(), see)


def _is_picked(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is a tensor of as many rows as data says, for which gradients may be recorded."""
    kind = kinds.of(node)
    return length_from_data(kind) and (kind.dtype or "float").startswith(("float", "complex"))


def _is_left_to_fix(function: ast.FunctionDef, call: ast.Call, kinds: Kinds) -> bool:
    """Whether `call` of a function of another part of the file can be written with torch.cat, and is noted for it."""
    if kinds.padded is None or not any(function in chunk.body for chunk in kinds.around):
        return False
    own = {*bound(function.body), *(each.arg for each in arguments(function.args))}
    if (dotted(call.func) or "").partition(".")[0] in own or by_zeros_in_helper(call, "torch") is None:
        return False
    if (function, call) not in kinds.padded:
        kinds.padded.append((function, call))
    return True


def _calls_in(call: ast.Call, kinds: Kinds, seen: set[str]) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """The calls in the function of the file, or the method, that `call` calls, and in those that it calls."""
    function = kinds.functions.get(dotted(call.func) or "")
    if function is None or function.name in seen:
        return
    seen.add(function.name)
    for each in ast.walk(function):
        if isinstance(each, ast.Call):
            yield function, each
            yield from _calls_in(each, kinds, seen)


def _pads(call: ast.Call, kinds: Kinds) -> bool:
    """Whether `call` pads with a constant."""
    modes = [each.value for each in call.keywords if each.arg == "mode"] or call.args[2:3]
    constant = all(isinstance(each, ast.Constant) and each.value == "constant" for each in modes)
    return constant and kinds.qualified(call.func) == _PAD
