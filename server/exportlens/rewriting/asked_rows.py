"""Calls in an arm of torch.cond that ask how many rows there are, of rows that data picks before the branch.

Measured on torch 2.13: `torch.topk(rows, 4)` in an arm has `rows` checked to have four, and the exported program checks that
outside of the arm too: it raises where the other arm would run. Of rows that are picked in the arm itself it does not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from exportlens.rewriting.draft import Refused
from exportlens.rewriting.effects import visit
from exportlens.rewriting.kind import length_from_data
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.text import Source

# By the name: where the dimension is given among the arguments, and whether it is the last where it is not (else all are).
_ASKING = {
    "topk": (2, True),
    "kthvalue": (2, True),
    "narrow": (1, True),
    "quantile": (2, False),
    "nanquantile": (2, False),
    "argmax": (1, False),
    "argmin": (1, False),
}


def refuse_asked_rows(
    source: Source, statements: Sequence[ast.stmt], kinds: Kinds, made_inside: Callable[[str], bool]
) -> None:
    """Refuse `statements`, an arm, that ask for a number of rows that are picked outside of it."""

    def see(statement: ast.stmt, now: Kinds) -> None:
        if hasattr(statement, "body"):
            return
        for call in ast.walk(statement):
            rows = _asked(call, now) if isinstance(call, ast.Call) else None
            if rows is None:
                continue
            kind = now.of(rows)
            if length_from_data(kind) and not (kind.roots and all(made_inside(root) for root in kind.roots)):
                raise Refused(
                    f"`{source.of(call)}` in an arm has the exported program ask for as many rows of `{source.of(rows)}` "
                    "on the other way too"
                )

    visit(statements, kinds.copy(), see)


def _asked(call: ast.Call, kinds: Kinds) -> ast.expr | None:
    """The tensor whose first dimension `call` wants long enough."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _ASKING:
        return None
    place, is_last = _ASKING[call.func.attr]
    is_function = (kinds.qualified(call.func) or "").startswith("torch.")
    operands = call.args if is_function else [call.func.value, *call.args]
    if not operands or any(isinstance(each, ast.Starred) for each in operands):
        return None
    dims = [each.value for each in call.keywords if each.arg == "dim"] or operands[place : place + 1]
    rank = kinds.of(operands[0]).rank
    if not dims:
        return operands[0] if not is_last or rank == 1 else None
    try:
        dim = ast.literal_eval(dims[0])
    except ValueError:
        return None
    return operands[0] if dim in (0, None) or (rank is not None and dim == -rank) else None
