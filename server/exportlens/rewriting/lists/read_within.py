"""Items of a list that are read in nothing but one and the same number of each, as `res[-1].norm()`: that may be kept instead."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.names import append_of
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before, repeatable
from exportlens.rewriting.memory.moving import writes
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


@dataclass(frozen=True, slots=True)
class Within:
    """What stands `before` and `behind` each item that is read, and the expression that is, for each read."""

    before: str
    behind: str
    whole: dict[ast.Subscript, ast.expr]

    def of(self, item: str) -> str:
        if not self.before and not item.isidentifier():
            item = f"({item})"
        return f"{self.before}{item}{self.behind}"


def read_within(
    source: Source,
    function: Function,
    appends: Sequence[ast.stmt],
    reads: Sequence[ast.Subscript],
    kinds: Kinds,
) -> Within | None:
    """The number that alone is computed of each item; None where there is none, or where an item may be written in place after
    it was appended."""
    if writes([function]) or not all(_is_let_be(source, function, each, kinds) for each in appends):
        return None
    found: Within | None = None
    for read in reads:
        whole = _call_of(source, read)
        if whole is None or isinstance(read.slice, ast.Slice):
            return None
        before = source.between(source.start(whole), source.start(read))
        behind = source.between(source.end(read), source.end(whole))
        if found is None:
            found = Within(before, behind, {})
        if (found.before, found.behind) != (before, behind):
            return None
        found.whole[read] = whole
    if found is None or not all(_is_number(source, function, each, found, kinds) for each in appends):
        return None
    return found


def _call_of(source: Source, read: ast.Subscript) -> ast.Call | None:
    """The call that takes in `read` and else constants only."""
    outer = source.parents[read]
    if isinstance(outer, ast.Attribute):
        outer = source.parents[outer]
    if not isinstance(outer, ast.Call):
        return None
    given = [*outer.args, *(each.value for each in outer.keywords)]
    plain = all(each is read or isinstance(each, ast.Constant) for each in given)
    method = isinstance(outer.func, ast.Attribute) and outer.func.value is read
    return outer if plain and method is not (read in given) else None


def _is_number(source: Source, function: Function, append: ast.stmt, within: Within, kinds: Kinds) -> bool:
    """Whether what is kept of the item that `append` adds is a tensor of one number, which costs nothing to compute again."""
    found = append_of(append)
    assert found is not None
    now = kinds_before(function, append, kinds)
    statement = parse_python(within.of(source.of(found[1]))).body[0]
    if not isinstance(statement, ast.Expr) or not repeatable(statement.value, now):
        return False
    kind = now.of(statement.value)
    return kind.what == "tensor" and kind.rank == 0


def _is_let_be(source: Source, function: Function, append: ast.stmt, kinds: Kinds) -> bool:
    """Whether nothing may write the item in place: it is only computed with, or given to torch's own functions."""
    found = append_of(append)
    assert found is not None
    if not isinstance(found[1], ast.Name):
        return not isinstance(found[1], (ast.Attribute, ast.Subscript))
    for each in walk(function):
        if not (isinstance(each, ast.Name) and each.id == found[1].id and isinstance(each.ctx, ast.Load)):
            continue
        outer = source.parents[each]
        if isinstance(outer, ast.Tuple):
            outer = source.parents[outer]
        own = source.enclosing_statement(each) is append
        taken = isinstance(outer, ast.Call) and (kinds.qualified(outer.func) or "").startswith("torch.")
        if not (own or taken or isinstance(outer, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.Return))):
            return False
    return True
