"""Masks that pick rows in an arm of torch.cond and elsewhere: torch takes both for as many rows, and the program checks what the
arm asks for whichever way is taken (measured on torch 2.13). Of a copy of the mask it does not know that."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk


def picks_elsewhere(source: Source, function: Function, mask: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether more than `statements` pick by `mask`: torch takes both for as many rows, and checks what the arm asks for always."""
    around = [each for each in source.ancestors(function) if isinstance(each, Function)]
    inside = {id(each) for statement in statements for each in walk(statement)}
    return any(
        id(each) not in inside and _is_pick(each, mask) for each in walk(around[-1] if around else function)
    )


def _is_pick(node: ast.AST, mask: str) -> bool:
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return isinstance(node.ctx, ast.Load) and any(_is_name(each, mask) for each in parts)
    return isinstance(node, ast.Call) and any(_is_name(each, mask) for each in found_by(node))


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def found_by(call: ast.Call) -> Sequence[ast.expr]:
    """What `call` may find the rows by, where it finds any."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if called == "where" and len(call.args) > 1:
        return ()
    own = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*own, *call.args] if called in ("nonzero", "argwhere", "masked_select", "where") else ()


def refuse_both(
    source: Source, function: Function, mask: str, statements: Sequence[ast.stmt], kinds: Kinds
) -> None:
    """Refuse an arm with what `mask` picked outside, too: of a copy torch does not know that it picks as many rows."""
    inside = {id(each) for statement in statements for each in walk(statement)}
    picked = {
        name
        for each in walk(function)
        if isinstance(each, ast.stmt)
        and not isinstance(each, (ast.If, ast.For, ast.While, ast.With, ast.Try, Function))
        and id(each) not in inside
        and any(_is_pick(one, mask) for one in walk(each))
        for name in bound([each])
    }
    known = {name for name, kind in kinds.names.items() if length_from_data(kind)}
    both = picked & reads(statements) & known
    if both:
        raise Refused(
            f"the branch asks for rows that `{mask}` picks, and `{min(both)}` was picked by it before: torch would check for both"
        )
