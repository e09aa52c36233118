"""Names that are None before a branch, and that an arm binds on some of its ways only: torch.cond gives no None."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import always_bound, leaves
from exportlens.rewriting.code.names import bound, is_none
from exportlens.rewriting.kinds.kind import SEVERAL, Kind


def refuse_still_none(name: str, before: Kind | None, statements: Sequence[ast.stmt]) -> None:
    """Raise Refused where `name`, which is or may be None `before` the arm `statements`, may be so behind it as well, as in
    `if last is not None and t > 0: last = last + x`."""
    items = (before.items or ()) if before is not None and before.type == SEVERAL else ()
    none = before is not None and (before.what == "none" or any(each.what == "none" for each in items))
    if none and name in bound(list(statements)) and not _is_given(name, statements):
        raise Refused(
            f"`{name}` may be None after the branch: choose a tensor that does the same, as a mask of ones"
        )


def _is_given(name: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether `name` is certainly not None where control falls out of `statements`, whatever it was before."""
    for each in statements:
        if isinstance(each, ast.If):
            asked = _tells(each.test, name)
            ways = [
                block
                for block, holds in ((each.body, True), (each.orelse, False))
                if not leaves(block) and asked is not holds
            ]
            if all(_is_given(name, block) for block in ways):
                return True
        elif name in always_bound([each]):
            return True
    return False


def _tells(test: ast.expr, name: str) -> bool | None:
    """How `test` comes out wherever `name` is not None; None where it may come out either way."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _tells(test.operand, name)
        return None if inner is None else not inner
    of_it = isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == name
    if isinstance(test, ast.Compare) and of_it and len(test.ops) == 1 and is_none(test.comparators[0]):
        return {ast.Is: False, ast.IsNot: True}.get(type(test.ops[0]))
    return None
