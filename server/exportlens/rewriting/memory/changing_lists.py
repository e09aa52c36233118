"""Lists that the loops around a statement make longer or shorter: they have another length in each round."""

from __future__ import annotations

import ast

from exportlens.inference.values import Sequence
from exportlens.rewriting.code.names import bound, reads, walk_own
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.kind import Kind
from exportlens.source.walking import walk

# Methods that make a list longer or shorter.
_LENGTHENING = frozenset({"append", "extend", "insert", "pop", "remove", "clear"})


def is_list(kind: Kind) -> bool:
    return isinstance(kind.value, Sequence) and kind.value.kind == "list"


def _loops_around(function: Function, goal: ast.stmt) -> list[ast.For | ast.While]:
    return [
        each
        for each in walk(function)
        if isinstance(each, (ast.For, ast.While)) and any(one is goal for one in walk_own(each.body))
    ]


def lengthened_around(function: Function, goal: ast.stmt) -> set[str]:
    """The names of lists that the loops around `goal` make longer or shorter."""
    found: set[str] = set()
    for each in (one for loop in _loops_around(function, goal) for one in walk_own(loop.body)):
        if (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and isinstance(each.func.value, ast.Name)
            and each.func.attr in _LENGTHENING
        ):
            found.add(each.func.value.id)
        elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
        elif isinstance(each, ast.Assign) and isinstance(each.value, (ast.BinOp, ast.Subscript)):
            found |= reads(each.value).intersection(bound(each))
    return found
