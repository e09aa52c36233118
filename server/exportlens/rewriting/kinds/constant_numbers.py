"""Numbers of Python that are written out."""

from __future__ import annotations

import ast

from exportlens.inference.operators import BINARY, fold
from exportlens.inference.values import Const
from exportlens.rewriting.code.infinity import infinity


def constant_number(node: ast.expr | None) -> int | float | bool | None:
    """The number that is written out, or computed of such numbers: `2.0**16`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_number(node.operand)
        return None if inner is None or isinstance(inner, bool) else -inner
    if isinstance(node, ast.BinOp):
        left, right = constant_number(node.left), constant_number(node.right)
        if left is None or right is None:
            return None
        computed = fold(BINARY[type(node.op)], left, right)
        number = computed.value if isinstance(computed, Const) else None
        return number if isinstance(number, (bool, int, float)) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        return node.value
    return infinity(node)
