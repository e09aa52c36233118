"""Numbers beside each other, of Python's and of NumPy's, and what NumPy holds: what an operation without arrays gives."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.arrays.array_types import OTHER, TENSOR, Typed, family, promoted
from exportlens.rewriting.code.draft import Refused


def of_others(left: Typed, right: Typed, op: ast.operator) -> Typed:
    """What an operation without arrays gives."""
    if left.is_number and right.is_number:
        return _of_two_numbers(left, right, op)
    held = [each for each in (left, right) if each.what == "held"]
    if "tensor" in (left.what, right.what):
        ints = all(each.what == "tensor" and each.dtype == "int64" for each in (left, right))
        least = max(each.least for each in (left, right) if each.what == "tensor")
        return replace(TENSOR, dtype="int64" if ints and not isinstance(op, ast.Div) else "", least=least)
    if held:
        dtype = ""
        if len(held) == 2 and all(each.dtype for each in held):
            dtype = promoted(left.dtype, right.dtype)
        elif held[0].dtype and family(held[0].dtype) == "float" and (left.is_number or right.is_number):
            dtype = held[0].dtype
        rank = held[0].rank if len(held) == 1 or left.rank == right.rank else None
        return Typed("held", dtype, rank, origins=frozenset().union(*(each.origins for each in held)))
    if left.holds_arrays or right.holds_arrays:
        raise Refused("lists of arrays are put together")
    return OTHER


def _of_two_numbers(left: Typed, right: Typed, op: ast.operator) -> Typed:
    if "constant" in (left.what, right.what):
        kinds = [each for each in (left, right) if each.what == "constant"]
        if len(kinds) == 2:
            return Typed("constant", promoted(left.dtype, right.dtype))
        other = right if left.what == "constant" else left
        own = kinds[0].dtype
        if family(own) == "float" or (isinstance(op, ast.Div) or other.dtype == "float"):
            return Typed("constant", own if family(own) == "float" else "float64")
        return Typed("constant", own) if other.dtype == "int" else OTHER
    kinds_of = {left.dtype, right.dtype}
    dtype = ""
    if "complex" in kinds_of:
        dtype = "complex"
    elif "float" in kinds_of or isinstance(op, ast.Div):
        dtype = "float"
    elif kinds_of <= {"int", "bool"}:
        dtype = (
            "int"
            if not isinstance(op, ast.Pow) or (isinstance(right.value, int) and right.value >= 0)
            else ""
        )
    value = None
    if isinstance(left.value, (int, float)) and isinstance(right.value, (int, float)):
        value = _calculated(left.value, right.value, op)
    return Typed("number", dtype, value=value, lowest=_lowest(left, right, op) if dtype == "int" else None)


def _lowest(left: Typed, right: Typed, op: ast.operator) -> int | None:
    """What the whole number of an operation is at least."""
    one, other = left.least_value, right.least_value
    if one is None:
        return None
    if isinstance(op, ast.Sub) and isinstance(right.value, int):
        return one - right.value
    if isinstance(op, ast.FloorDiv) and isinstance(right.value, int) and right.value > 0:
        return one // right.value
    if isinstance(op, ast.Add) and other is not None:
        return one + other
    return one * other if isinstance(op, ast.Mult) and other is not None and min(one, other) >= 0 else None


def _calculated(left: int | float, right: int | float, op: ast.operator) -> int | float | None:
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    return left * right if isinstance(op, ast.Mult) else None
