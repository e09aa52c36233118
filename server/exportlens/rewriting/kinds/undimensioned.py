"""Expressions that give a tensor without dimensions, whatever the tensors that they are computed of look like."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import assigned_pairs, dotted
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.kinds import Kinds

# What gives one number of all that a tensor holds, where it is told no dimension.
_REDUCTIONS = frozenset(
    {
        "mean",
        "sum",
        "std",
        "var",
        "max",
        "min",
        "amax",
        "amin",
        "median",
        "norm",
        "prod",
        "nanmean",
        "nansum",
        "any",
        "all",
    }
)
# What gives several of these at once.
_PAIRS = frozenset({"aminmax", "std_mean", "var_mean"})
# What keeps the dimensions of what it is called of, and reads nothing but numbers beside it.
_ELEMENTWISE = frozenset(
    {"detach", "clone", "abs", "sqrt", "rsqrt", "exp", "log", "log1p", "neg", "square", "reciprocal", "sigmoid", "tanh", "float",
     "clamp", "clamp_min", "clamp_max", "pow", "mul", "add", "sub", "div", "lerp", "contiguous"}
)  # fmt: skip
_OF_TWO = frozenset({"maximum", "minimum", "lerp", "where", "add", "sub", "mul", "div", "clamp", "pow"})
_DEEPEST = 6


def has_no_dimensions(
    node: ast.expr, function: Function, kinds: Kinds, draft: Draft, depth: int = _DEEPEST
) -> bool:
    """Whether `node` of `function` is a tensor without dimensions; `kinds` are the values that are known there."""

    def alike(each: ast.expr) -> bool:
        return has_no_dimensions(each, function, kinds, draft, depth - 1)

    def fits(each: ast.expr) -> bool:
        return kinds.of(each).what in ("number", "size", "scalar") or alike(each)

    kind = kinds.of(node)
    if kind.what == "tensor" and kind.rank == 0:
        return True
    if depth == 0 or kind.what in ("number", "size", "scalar", "none") or (kind.rank or 0) > 0:
        return False
    if isinstance(node, ast.IfExp):
        return alike(node.body) and alike(node.orelse)
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and alike(node.operand)
    if isinstance(node, ast.BinOp):
        one = alike(node.left) or alike(node.right)
        return one and fits(node.left) and fits(node.right)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        plain = len(sides) == 2 and not isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot))
        return plain and any(map(alike, sides)) and all(map(fits, sides))
    if isinstance(node, ast.Name):
        given = [
            value
            for each in ast.walk(function)
            if isinstance(each, (ast.Assign, ast.AnnAssign))
            for target, value in assigned_pairs(each)
            if dotted(target) == node.id
        ]
        bound = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
        ]
        if len(bound) == 1 and not given:
            return any(_is_one_of_pair(each, node.id, draft) for each in ast.walk(function))
        return len(given) == len(bound) == 1 and alike(given[0])
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    of_torch = draft.qualified(node.func).startswith("torch.")
    tensors = node.args if of_torch else [node.func.value, *node.args]
    if of_torch and name in ("min", "max") and len(tensors) == 2 and not node.keywords:
        return all(map(alike, tensors))
    if name in _REDUCTIONS:
        return len(tensors) == 1 and not node.keywords
    if of_torch and name.endswith("_like"):
        return bool(tensors) and alike(tensors[0])
    if of_torch and name in _OF_TWO and not node.keywords:
        return any(map(alike, tensors)) and all(map(fits, tensors))
    if name not in _ELEMENTWISE or not tensors:
        return False
    given_numbers = [*tensors[1:], *(each.value for each in node.keywords)]
    return alike(tensors[0]) and all(map(fits, given_numbers))


def _is_one_of_pair(node: ast.AST, name: str, draft: Draft) -> bool:
    """Whether `node` binds `name` to one of what a reduction gives that is told no dimension: `low, high = torch.aminmax(x)`."""
    call = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.keywords:
        return False
    target = node.targets[0]  # type: ignore[attr-defined]
    taken = len(call.args) == (1 if draft.qualified(call.func).startswith("torch.") else 0)
    named = isinstance(target, ast.Tuple) and len(target.elts) == 2 and name in map(dotted, target.elts)
    return taken and named and call.func.attr in _PAIRS


def asked_tensor(node: ast.expr, function: Function, kinds: Kinds, draft: Draft) -> ast.expr | None:
    """The tensor of one truth that `node` reads as a bool of Python: of `bool(x.max() > 2)`, `(x > 2).any().item()`."""
    asked: ast.expr | None = None
    if isinstance(node, ast.Call) and dotted(node.func) == "bool" and len(node.args) == 1:
        asked = node.args[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        asked = node.func.value
    if asked is None or not has_no_dimensions(asked, function, kinds, draft):
        return None
    whole = isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute)
    truth = whole and asked.func.attr in ("any", "all")  # type: ignore[attr-defined]
    return asked if isinstance(asked, ast.Compare) or truth else None
