"""Branches that only check: an assertion on one side, and nothing on the other."""

from __future__ import annotations

import ast

from exportlens.rewriting.checks.assertions import assert_text
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds


def only_check(source: Source, node: ast.If) -> ast.Assert | None:
    """The assertion that is all that `node` does: its other side does nothing, or returns from a function that ends there."""
    for side, other in ((node.body, node.orelse), (node.orelse, node.body)):
        if len(side) != 1 or not isinstance(side[0], ast.Assert):
            continue
        last = other[0] if len(other) == 1 else None
        if (
            not other
            or isinstance(last, ast.Pass)
            or (last is not None and _ends_function(source, node, last))
        ):
            return side[0]
    return None


def _ends_function(source: Source, node: ast.If, last: ast.stmt) -> bool:
    """Whether `last`, a side of `node`, returns nothing from a function of which `node` is the end."""
    function = source.enclosing_function(node)
    returns = isinstance(last, ast.Return) and last.value is None
    return returns and function is not None and function.body[-1] is node


def guarded_assert(source: Source, node: ast.If, check: ast.Assert, kinds: Kinds, torch: str) -> str:
    """`if c: assert t` asserts `not c or t`, and `if c: return`, `else: assert t` asserts `c or t`."""
    message = f", {source.of(check.msg)}" if check.msg is not None else ""
    no = "not " if check in node.body else ""
    text = f"assert {no}({source.of(node.test)}) or ({source.of(check.test)}){message}"
    if source.text.startswith("elif", source.start(node)):
        raise Refused("an `elif` that only checks")
    start, end = source.start(node), source.span([node])[1]
    comments = source.comments_between(start, end) if source.begins_line(node) else []
    head = "".join(f"{each}{source.newline}{source.indent_of(node)}" for each in comments)
    simple = Source(replaced(source.text, [Replacement(start, end, head + text)]))
    start += len(head)
    statement = next(
        each for each in ast.walk(simple.tree) if isinstance(each, ast.Assert) and simple.start(each) == start
    )
    return assert_text(simple, statement, kinds, torch)
