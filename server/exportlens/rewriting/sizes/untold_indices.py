"""Indices that may have no dimensions: what is taken of a dimension of something unknown, and items of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

# Those of numbers: torch has none of them for a mask (measured on torch 2.13). What is computed by the last of them is of ints.
_OF_NUMBERS = frozenset({"kthvalue", "median", "nanmedian"})
_OF_ANYTHING = frozenset({"max", "min", "mode"})
_ONE_TENSOR = frozenset({"amax", "amin"})
# What keeps the dimensions, and what takes no mask besides.
_KEEPING = frozenset({"cpu", "detach", "clone", "contiguous", "to"})
_NOT_OF_MASKS = frozenset({"clamp", "clamp_min", "clamp_max", "long", "int", "abs"})


def untold_kind(node: ast.expr, kinds: Kinds, function: ast.AST) -> str:
    """ "part" for what is certainly of numbers and taken of a dimension, `ids.kthvalue(2).values`, "row" for what is taken of one and
    may be a mask, `ids.max(0)[0]`, "item" for an item of something unknown, `labels[i]`; "" for anything else."""
    found = {_kind(each, kinds, function) for each in _given(node, function)}
    return found.pop() if len(found) == 1 else ""


def _given(node: ast.expr, function: ast.AST) -> Iterator[ast.expr | None]:
    """What `node` is wherever `function` binds it, None where that is not told."""
    if not isinstance(node, ast.Name):
        yield node
        return
    for each in walk(function):
        if isinstance(each, ast.Assign):
            for target in each.targets:
                yield from _bound_to(target, each.value, node.id)
        elif isinstance(each, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.withitem)):
            held = each.optional_vars if isinstance(each, ast.withitem) else each.target
            if held is not None and any(
                isinstance(one, ast.Name) and one.id == node.id and isinstance(one.ctx, ast.Store)
                for one in ast.walk(held)
            ):
                yield None


def _bound_to(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr | None]:
    if isinstance(target, ast.Name):
        if target.id == name:
            yield value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for index, each in enumerate(target.elts):
            if not any(
                isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
                for one in ast.walk(each)
            ):
                continue
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                yield from _bound_to(each, value.elts[index], name)
            else:
                yield (
                    ast.Subscript(value, ast.Constant(index), ast.Load())
                    if isinstance(each, ast.Name)
                    else None
                )


def _kind(node: ast.expr | None, kinds: Kinds, function: ast.AST) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _KEEPING:
            return _kind(node.func.value, kinds, function)
        if node.func.attr in _NOT_OF_MASKS and kinds.of(node.func.value).what == "tensor":
            return "part" if _kind(node.func.value, kinds, function) in ("part", "row") else ""
        if node.func.attr in _ONE_TENSOR:
            return _certainty(node)
    first = isinstance(node, ast.Attribute) and node.attr == "values"
    if isinstance(node, ast.Subscript):
        first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
    if first and isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.value, ast.Call):
        return _certainty(node.value)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
        at = kinds.of(node.slice)
        if kinds.of(node.value).what != "tensor":
            return ""
        counted = at.what in ("number", "size", "scalar") and at.type == "int"
        return "item" if counted or (at.what == "tensor" and at.rank == 0) else ""
    return ""


def _certainty(call: ast.Call) -> str:
    if not isinstance(call.func, ast.Attribute):
        return ""
    if call.func.attr in _OF_NUMBERS:
        return "part"
    if call.func.attr not in (_OF_ANYTHING | _ONE_TENSOR):
        return ""
    # `ids.clamp(min=0).max(0)`: masks cannot be clamped.
    of = call.func.value
    numbers = (
        isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr in _NOT_OF_MASKS
    )
    return "part" if numbers else "row"
