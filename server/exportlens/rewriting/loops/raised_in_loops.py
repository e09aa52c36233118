"""Errors that a loop's body raises, which tensor data leaves: a flag leaves the loop, and is checked right behind it.

    while gap > eps:                       failed = torch.zeros((), dtype=torch.bool)
        n += 1                             while not failed and gap > eps:
        if n > 100:                            n += 1
            raise RuntimeError("slow")  ->     failed = n > 100
        gap = gap / 2                          if not failed:
                                                   gap = gap / 2
                                           torch._assert_async(torch.logical_not(failed), "slow")

while_loop and torch.cond take no assertion inside. An error leaves the loop as `break` does, and nothing runs before the check.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.checks.assertions import (
    message_of_raise,
    refuse_where_callers_catch,
    refuse_where_caught,
)
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk


def errors_of(
    source: Source, loop: ast.For | ast.While, function: Function, kinds: Kinds
) -> dict[ast.Raise, str]:
    """The errors that the body of `loop` raises, with the texts of their messages. Raises Refused."""
    found: dict[ast.Raise, str] = {}
    # What the loop changes is known in each round only: a message that tells it is told in part.
    behind = kinds.copy()
    behind.names |= dict.fromkeys(bound(loop), replace(UNKNOWN_KIND))
    for each in walk(loop):
        if not isinstance(each, ast.Raise) or source.enclosing_function(each) is not function:
            continue
        if not all(isinstance(outer, ast.If) for outer in _between(source, each, loop)):
            raise Refused("the loop's body raises inside of another statement than an `if`")
        if any(one is each for one in loop.orelse):
            continue
        refuse_where_caught(source, each)
        refuse_where_callers_catch(source, each, [each], kinds)
        found[each] = message_of_raise(source, [each], behind)
    return found


def _between(source: Source, node: ast.stmt, loop: ast.For | ast.While) -> list[ast.AST]:
    """What stands around `node` inside of `loop`."""
    outer = []
    for each in source.ancestors(node):
        if each is loop:
            break
        outer.append(each)
    return outer
