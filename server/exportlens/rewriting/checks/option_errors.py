"""Errors for options that code does not know: `else: raise ValueError(self.mode)` behind `if self.mode == "a":` and `elif`s.

Tracing asks for the same option, so that such code may stand in a branch on tensor data: it raises while tracing, or never.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from exportlens.inference.values import Const
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds

# An option that is none of so many is one that the code does not know.
_FEWEST = 2


def raises_by_option(
    source: Source,
    function: Function,
    block: Sequence[ast.stmt],
    kinds: Kinds,
    torch: str,
    others: frozenset[tuple[str, str]] = frozenset(),
) -> bool:
    """Whether `block` of `function` raises nowhere but for an option that is none of several, or is known to be none of those for
    which it raises. `kinds` are those of a place before it, `others` what the option is not where `block` runs.

    An option that is on or off may ask for an error with some data: in a branch, it would be raised with any.
    """
    for each in block:
        if "raises" not in exits([each]):
            continue
        if isinstance(each, ast.Raise):
            return max(Counter(asked for asked, _ in others).values(), default=0) >= _FEWEST
        if not isinstance(each, ast.If) or _asked(each.test) & set(bound(function.body)):
            # What a name that the function binds is at another place is not known here.
            return False
        try:
            condition = Predicates(source, kinds, torch).read(each.test)
        except Refused:
            return False
        if condition.form != "static":
            return False
        known = _known(each.test, kinds)
        for arm, taken in ((each.body, True), (each.orelse, False)):
            excluded = others | _excluded(each.test, taken)
            if known is not (not taken) and not raises_by_option(
                source, function, arm, kinds, torch, excluded
            ):
                return False
    return True


def _excluded(test: ast.expr, holds: bool) -> frozenset[tuple[str, str]]:
    """What is compared with constants, each with one that it is not where `test` holds or does not hold."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return frozenset()
    op, given = test.ops[0], test.comparators[0]
    same = ast.NotEq if holds else ast.Eq
    among = ast.NotIn if holds else ast.In
    values = [given] if isinstance(op, same) else []
    if isinstance(op, among) and isinstance(given, (ast.Tuple, ast.List, ast.Set)):
        values = given.elts
    asked = ast.unparse(test.left)
    return frozenset((asked, ast.unparse(each)) for each in values if isinstance(each, ast.Constant))


def _known(test: ast.expr, kinds: Kinds) -> bool | None:
    """Whether `test`, a comparison of constants, holds."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, right = (kinds.of(each).value for each in (test.left, test.comparators[0]))
    if (
        not isinstance(left, Const)
        or not isinstance(right, Const)
        or type(left.value) is not type(right.value)
    ):
        return None
    if isinstance(test.ops[0], ast.Eq):
        return bool(left.value == right.value)
    return bool(left.value != right.value) if isinstance(test.ops[0], ast.NotEq) else None


def _asked(node: ast.AST) -> set[str]:
    """The names whose values `node` reads, and not only what their dimensions are."""
    if isinstance(node, ast.Attribute) and node.attr in ("dim", "ndim", "shape", "size"):
        return set()
    if isinstance(node, ast.Name):
        return {node.id}
    return {name for each in ast.iter_child_nodes(node) for name in _asked(each)}
