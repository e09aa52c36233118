"""Rows that a mask picks, padded in an arm of torch.cond.

Measured on torch 2.13: where gradients are recorded eager's torch.cond traces the backward of its arms, too, and that of `F.pad`
with a constant asks for the sizes as numbers. `torch.cat` with zeros does the same without.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.draft import Refused
from exportlens.rewriting.effects import visit
from exportlens.rewriting.kind import length_from_data
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.names import dotted
from exportlens.rewriting.text import Source

_PAD = "torch.nn.functional.pad"


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
            if any(_pads(each, now) for each in [call, *_calls_in(call, now, set())]):
                raise Refused(
                    f"`{source.of(call.func)}` pads `{source.of(rows)}`, of which data says how many there are: torch.cond "
                    "cannot trace the gradient of F.pad there. Write torch.cat with zeros instead"
                )

    visit(statements, kinds.copy(), see)


def _is_picked(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is a tensor of as many rows as data says, for which gradients may be recorded."""
    kind = kinds.of(node)
    return length_from_data(kind) and (kind.dtype or "float").startswith(("float", "complex"))


def _calls_in(call: ast.Call, kinds: Kinds, seen: set[str]) -> Iterator[ast.Call]:
    """The calls in the function of the file, or the method, that `call` calls, and in those that it calls."""
    function = kinds.functions.get(dotted(call.func) or "")
    if function is None or function.name in seen:
        return
    seen.add(function.name)
    for each in ast.walk(function):
        if isinstance(each, ast.Call):
            yield each
            yield from _calls_in(each, kinds, seen)


def _pads(call: ast.Call, kinds: Kinds) -> bool:
    """Whether `call` pads with a constant."""
    modes = [each.value for each in call.keywords if each.arg == "mode"] or call.args[2:3]
    constant = all(isinstance(each, ast.Constant) and each.value == "constant" for each in modes)
    return constant and kinds.qualified(call.func) == _PAD
