"""What Python's operators give: kinds of arithmetic, comparisons and logic."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from exportlens.inference.values import Const, Sequence, Tensor, TensorScalar, Unknown
from exportlens.rewriting.kinds.kind import (
    SEVERAL,
    UNKNOWN_KIND,
    Kind,
    binary_dtype,
    binary_rank,
    is_given,
    length_from_data,
    merged,
    union,
)

if TYPE_CHECKING:
    from exportlens.rewriting.kinds.kinds import Kinds


# More options than these are not gone through one by one.
_MOST_OPTIONS = 4


def of_arithmetic(kinds: Kinds, node: ast.BinOp) -> Kind:
    return _computed(node.op, kinds.of(node.left), kinds.of(node.right))


def _computed(op: ast.operator, left: Kind, right: Kind) -> Kind:
    if "tensor" in (left.what, right.what):
        # What is a number on one way and a tensor on another gives a tensor on each, beside a tensor.
        for one, swapped in ((left, False), (right, True)):
            if one.type == SEVERAL and one.items and len(one.items) <= _MOST_OPTIONS:
                return merged(
                    [
                        _computed(op, left, each) if swapped else _computed(op, each, right)
                        for each in one.items
                    ]
                )
        moved = not isinstance(op, ast.MatMult) and (left.moved or right.moved)
        rank = binary_rank(op, left, right)
        rows = not isinstance(op, ast.MatMult) and any(map(length_from_data, (left, right)))
        value = Tensor(unbacked=True) if rows else None
        return Kind("tensor", binary_dtype(op, left, right), rank, value=value, moved=moved)
    if "unknown" in (left.what, right.what) or "container" in (left.what, right.what):
        # What takes a float computes something new; only lists hand on what they hold.
        new = any(
            each.type == "float" and each.what in ("static", "number", "scalar") for each in (left, right)
        )
        return replace(_of_given([left, right]), roots=frozenset() if new else union([left, right]))
    kind = "float" if "float" in (left.type, right.type) or isinstance(op, ast.Div) else "int"
    for what in ("scalar", "size", "number"):
        if what in (left.what, right.what):
            return Kind(what, type=kind)
    return Kind("static")


def of_sign(kinds: Kinds, node: ast.UnaryOp) -> Kind:
    kind = kinds.of(node.operand)
    if isinstance(node.op, ast.Not):
        return (
            Kind("scalar" if kind.from_data else "number", type="bool")
            if kind.what != "unknown"
            else UNKNOWN_KIND
        )
    if kind.what == "tensor" and isinstance(node.op, ast.UAdd):
        return kind  # the tensor itself
    if kind.what == "tensor":
        return Kind("tensor", kind.dtype, kind.rank, moved=kind.moved)
    if kind.what == "number" and isinstance(kind.value, Const) and isinstance(node.op, (ast.USub, ast.UAdd)):
        number = kind.value.value
        return replace(kind, value=Const(-number if isinstance(node.op, ast.USub) else number))
    return kind


def of_comparison(kinds: Kinds, node: ast.Compare) -> Kind:
    given = [kinds.of(each) for each in (node.left, *node.comparators)]
    if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops) or _compares_with_none(node):
        return Kind("number", type="bool")
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        if any(kind.from_data for kind in given) or _holds_numbers_of_data(given[1]):
            return Kind("scalar", type="bool")
        return Kind("number", type="bool") if given[1].what != "unknown" else UNKNOWN_KIND
    if any(kind.what == "tensor" for kind in given):
        ranks = [kind.rank if kind.what == "tensor" else 0 for kind in given]
        return Kind(
            "tensor", "bool", None if None in ranks else max(rank for rank in ranks if rank is not None)
        )
    if any(kind.what == "scalar" for kind in given):
        return Kind("scalar", type="bool")
    if any(kind.what == "unknown" for kind in given):
        return _of_given(given)
    return Kind("number", type="bool")


def _of_given(kinds: list[Kind]) -> Kind:
    """What is computed of something unknown: with an argument of the model, it may be a tensor as the argument may."""
    value = Unknown("computed with an argument", given="part") if any(map(is_given, kinds)) else None
    return replace(UNKNOWN_KIND, value=value)


def of_logic(kinds: Kinds, node: ast.BoolOp) -> Kind:
    given = [kinds.of(each) for each in node.values]
    if any(kind.from_data for kind in given):
        return Kind("scalar", type="bool") if all(kind.what != "unknown" for kind in given) else UNKNOWN_KIND
    return UNKNOWN_KIND if any(kind.what == "unknown" for kind in given) else Kind("number", type="bool")


def _holds_numbers_of_data(kind: Kind) -> bool:
    """Whether `kind` is a list of numbers that were read out of a tensor."""
    value = kind.value
    return (
        kind.what == "container" and isinstance(value, Sequence) and isinstance(value.element, TensorScalar)
    )


def _compares_with_none(node: ast.Compare) -> bool:
    """Whether `node` is `t == None` or `t != None`, of which a tensor makes a bool of Python."""
    sides = [node.left, *node.comparators]
    return isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and any(
        isinstance(each, ast.Constant) and each.value is None for each in sides[:2]
    )
