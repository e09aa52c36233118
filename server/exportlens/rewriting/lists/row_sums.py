"""Sums of the rows of a tensor whose rank nothing tells: they have the shape of a row.

total = 0.0                       total = x.new_zeros(x.shape[1:]) + 0.0
for v in x:                  ->   for v in x:
    if v > 0:                         if v > 0:
        total = total + v                 total = total + v
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds

# Functions of torch that take a tensor and no number, and compute element by element.
OF_ELEMENTS = frozenset(
    {
        *(
            "abs",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sqrt",
            "rsqrt",
            "square",
            "reciprocal",
        ),
        *("sigmoid", "tanh", "relu", "softplus", "neg", "sign", "sin", "cos", "clamp", "isnan", "isfinite"),
    }
)


def shaped_like_rows(whole: str, start: str) -> str:
    """What a sum of rows of `whole` begins with: a float makes floats of what is added to it, if that is none."""
    return f"{whole}.new_zeros({whole}.shape[1:]) + {start}"


def summed_rows(
    source: Source, function: Function, update: ast.Name, terms: list[ast.expr], kinds: Kinds
) -> str | None:
    """The tensor whose rows the loop around `update` goes through, where each of `terms` has the shape of such a row; None where
    that is not certain."""
    rows = {
        each.id
        for term in terms
        for each in ast.walk(term)
        if isinstance(each, ast.Name) and kinds.of(each).what == "tensor" and kinds.of(each).rank is None
    }
    if len(rows) != 1 or not all(_keeps_shape(term, kinds) for term in terms):
        return None
    name = rows.pop()
    for outer in source.ancestors(update):
        if outer is function:
            return None
        if isinstance(outer, ast.For) and name in bound(outer.target):
            whole = _iterated(outer.target, outer.iter, name)
            path = dotted(whole) if whole is not None else None
            # What the loop binds anew has other rows in the next round.
            anew = bound(outer.body)
            if path is None or name in anew or path.partition(".")[0] in anew:
                return None
            return path
    return None


def _iterated(target: ast.expr, iterated: ast.expr, name: str) -> ast.expr | None:
    """The tensor of `for v in x`, `for i, v in enumerate(x)`, `for v, w in zip(x, y)` whose rows get `name`."""
    if isinstance(target, ast.Name):
        return iterated if target.id == name else None
    if not isinstance(target, ast.Tuple) or not isinstance(iterated, ast.Call) or iterated.keywords:
        return None
    if any(isinstance(each, ast.Starred) for each in (*target.elts, *iterated.args)):
        return None
    called, given = ast.unparse(iterated.func), list(iterated.args)
    if called == "enumerate" and len(target.elts) == 2 and given:
        return _iterated(target.elts[1], given[0], name)
    if called == "zip" and len(target.elts) == len(given):
        for one, value in zip(target.elts, given, strict=True):
            found = _iterated(one, value, name)
            if found is not None:
                return found
    return None


def _keeps_shape(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is computed element by element, of a row and numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.BinOp):
        return (
            isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow))
            and _keeps_shape(node.left, kinds)
            and _keeps_shape(node.right, kinds)
        )
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.USub, ast.UAdd)) and _keeps_shape(node.operand, kinds)
    if isinstance(node, ast.Call) and not node.keywords:
        module, _, name = (kinds.qualified(node.func) or "").rpartition(".")
        if module == "torch" and name in OF_ELEMENTS and len(node.args) == 1:
            return _keeps_shape(node.args[0], kinds)
        func = node.func
        if not isinstance(func, ast.Attribute) or node.args:
            return False
        return func.attr in OF_ELEMENTS and _keeps_shape(func.value, kinds)
    kind = kinds.of(node)
    return kind.what == "number" or (kind.what == "tensor" and (kind.rank == 0 or isinstance(node, ast.Name)))
