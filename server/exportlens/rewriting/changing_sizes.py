"""Sizes that change from round to round: what while_loop carries keeps its shape."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.draft import Refused
from exportlens.rewriting.kinds import Kinds
from exportlens.source.walking import walk


def refuse_changing_sizes(body: Sequence[ast.stmt], carried: Sequence[str], kinds: Kinds) -> None:
    """Raise Refused where a round leaves a part of a carried tensor: `left = left[1:]`, `left = left[mask]`."""
    for statement in body:
        for node in walk(statement):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id in carried
                and isinstance(node.value, ast.Subscript)
                and isinstance(node.value.value, ast.Name)
                and node.value.value.id == node.targets[0].id
                and _leaves_a_part(node.value.slice, kinds)
            ):
                name = node.targets[0].id
                raise Refused(
                    f"the size of `{name}` changes from round to round, and while_loop carries tensors of one shape: mark in a mask "
                    "what is left"
                )


def _leaves_a_part(index: ast.expr, kinds: Kinds) -> bool:
    """Whether fewer rows are left: all but the first or the last, or those that a mask picks."""
    if isinstance(index, ast.Slice):
        lower, upper = index.lower, index.upper
        return index.step is None and (
            (isinstance(lower, ast.Constant) and bool(lower.value) and upper is None)
            or (isinstance(upper, ast.UnaryOp) and isinstance(upper.op, ast.USub))
        )
    return kinds.of(index).dtype == "bool"
