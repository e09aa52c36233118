"""Expressions with the names of their scope replaced by what they were bound to."""

from __future__ import annotations

import ast
import copy


class _Inline(ast.NodeTransformer):
    def __init__(self, bound: dict[str, ast.expr]) -> None:
        self._bound = bound

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self._bound:
            return self._bound[node.id]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node


def inlined(node: ast.expr, bound: dict[str, ast.expr]) -> ast.expr:
    """The expression with the names of its scope replaced by what they were bound to. What is bound is shared, not
    copied: no one may write into the result.
    """
    if not any(isinstance(each, ast.Name) and each.id in bound for each in ast.walk(node)):
        return node
    result: ast.expr = _Inline(bound).visit(copy.deepcopy(node))
    return result
