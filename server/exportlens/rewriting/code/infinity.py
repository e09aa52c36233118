"""The infinities, which Python has no literal for."""

from __future__ import annotations

import ast
import math

from exportlens.rewriting.code.names import dotted

_NAMED = frozenset({"math.inf", "np.inf", "numpy.inf", "torch.inf"})
_SPELLED = frozenset({"inf", "infinity"})


def infinity(node: ast.expr | None) -> float | None:
    """inf or -inf where `node` writes it out: `float("-inf")`, `math.inf`, `-np.inf`; None for all else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = infinity(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Attribute):
        return math.inf if dotted(node) in _NAMED else None
    if not (isinstance(node, ast.Call) and dotted(node.func) == "float" and len(node.args) == 1):
        return None
    given = node.args[0]
    if not isinstance(given, ast.Constant) or not isinstance(given.value, str):
        return None
    text = given.value.strip().lower()
    return float(text) if text.removeprefix("+").removeprefix("-") in _SPELLED else None
