"""Operators between arrays, numbers and both, in the dtype that NumPy computes in."""

from __future__ import annotations

import re
import struct
from dataclasses import replace

from exportlens.rewriting.arrays.array_pieces import Piece, Scope, cast, common
from exportlens.rewriting.arrays.array_types import FLOATS, RefusedUnlike, Typed, array, family, joint
from exportlens.rewriting.code.draft import Refused

_NAME = re.compile(r"\b[A-Za-z_]\w*")


def computed(scope: Scope, left: Piece, right: Piece, sign: str) -> tuple[Piece, Piece, Typed]:
    """Both sides of an operation as torch needs them, and what it gives."""
    dtype = common([left, right])
    both = left.type.is_array and right.type.is_array
    if sign == "/" and family(dtype) in ("int", "bool"):
        dtype = "float64"
    if (
        sign in ("//", "%")
        and family(dtype) in ("int", "bool")
        and not (right.type.is_number and isinstance(right.type.value, int) and right.type.value)
        and not right.type.of_dimension
    ):
        raise RefusedUnlike("NumPy divides whole numbers by zero, and torch raises")
    squares = right.type.what == "number" and isinstance(right.type.value, int) and right.type.value >= 0
    if sign == "**" and family(dtype) in ("int", "bool") and (dtype == "bool" or not squares):
        raise RefusedUnlike("NumPy takes powers of whole numbers otherwise than torch")
    if sign == "-" and dtype == "bool":
        raise RefusedUnlike("NumPy subtracts no bools")
    if sign in ("+", "*") and dtype == "bool":
        raise RefusedUnlike("NumPy adds bools by a logical or, and torch to numbers")
    if sign in ("&", "|", "^") and (family(dtype) not in ("bool", "int") or (not both and dtype != "bool")):
        raise Refused(f"what `{sign}` does with these dtypes is not known")
    if sign in ("<<", ">>"):
        raise Refused("bits are shifted")
    left, right = _matched(scope, left, right, dtype)
    if sign == "-":
        # torch subtracts no bools.
        left, right = _without_bools(scope, left, right, dtype), _without_bools(scope, right, left, dtype)
    rank = joint([each.type.rank for each in (left, right) if each.type.is_array])
    kind = array(dtype, rank, _least(left, right))
    either = all(each.type.is_number or each.type.or_number for each in (left, right))
    return left, right, replace(kind, or_number=either, ascends=_ascends(left.type, right.type, sign))


def _ascends(left: Typed, right: Typed, sign: str) -> bool:
    """Whether what is computed of rows that go up goes up as well."""
    if sign == "+":
        return left.ascends and right.ascends
    factor = right.value if left.ascends else left.value if sign == "*" and right.ascends else None
    return sign in ("*", "/") and isinstance(factor, (int, float)) and factor > 0


def beside_tensor(left: Piece, right: Piece) -> Typed | None:
    """What an operation gives of a tensor and one number of NumPy's, which stays a tensor; None for anything else. Beside a tensor
    with dimensions a tensor without them decides the dtype as little as the number does, but for ints beside floats."""
    tensor, number = (left.type, right.type) if left.type.what == "tensor" else (right.type, left.type)
    if tensor.what != "tensor" or not number.is_array or number.rank != 0 or tensor.rank == 0:
        return None
    if number.dtype == "bool" or family(number.dtype) == "complex":
        return None
    whole = tensor.dtype not in ("", "float") and family(tensor.dtype) in ("int", "bool")
    if whole and (family(number.dtype) != "int" or tensor.dtype == "bool"):
        raise RefusedUnlike("beside a tensor of ints a number of NumPy's is of single precision")
    if not tensor.has_dimensions and number.dtype == "float64" and tensor.dtype != "float64":
        raise RefusedUnlike(
            "a tensor without dimensions decides the dtype beside another one, and a number does not"
        )
    return replace(tensor, rank=None)


def compared(scope: Scope, left: Piece, right: Piece) -> tuple[Piece, Piece, Typed]:
    """Both sides of a comparison as torch needs them, and what it gives."""
    dtype = common([left, right])
    rank = joint([each.type.rank for each in (left, right) if each.type.is_array])
    families = {family(left.type.dtype), family(right.type.dtype)}
    # Whole numbers are compared as such; beside what may be floats, those that a float32 holds exactly are.
    exact = families <= {"int", "bool"} or (
        families == {"int", "float"} and FLOATS in (left.type.dtype, right.type.dtype)
    )
    alike = left.type.is_array and right.type.is_array and exact
    if not alike and not _is_beside_ints(left.type, right.type):
        left, right = _matched(scope, left, right, dtype)
    return left, right, array("bool", rank, _least(left, right))


def _is_beside_ints(left: Typed, right: Typed) -> bool:
    """Whether whole numbers are compared with a float that single precision, which torch compares in, leaves on the same side of
    all of them."""
    held, number = (left, right) if left.is_array else (right, left)
    value = number.value
    if family(held.dtype) != "int" or number.what != "number" or not isinstance(value, float):
        return False
    if not abs(value) < 2**24:
        return False
    single = struct.unpack("f", struct.pack("f", value))[0]
    return bool(single == value or not single.is_integer())


def multiplied(scope: Scope, left: Piece, right: Piece) -> tuple[Piece, Piece, Typed]:
    """Both sides of a matrix product, and what it gives."""
    if not (left.type.is_array and right.type.is_array):
        odd = right if left.type.is_array else left
        raise Refused(f"`{odd.text}` is not known to be an array that was a tensor")
    dtype = common([left, right])
    if dtype == "bool":
        raise Refused("torch multiplies no matrices of bools")
    one, other = left.type.rank, right.type.rank
    rank = None
    if one is not None and other is not None:
        rank = {1: one - 1}.get(other, max(one, other)) if one > 1 else (0 if other == 1 else other - 1)
    elif other == 2 and one is not None:
        rank = one
    left = cast(scope, left, dtype, named(scope, right))
    return left, cast(scope, right, dtype, named(scope, left)), array(dtype, rank)


def _matched(scope: Scope, left: Piece, right: Piece, dtype: str) -> tuple[Piece, Piece]:
    if not (left.type.is_array and right.type.is_array):
        if left.type.is_array:
            return _beside_number(scope, left, right, dtype), right
        return left, _beside_number(scope, right, left, dtype)
    if left.type.dtype == right.type.dtype:
        return (left, right) if left.type.dtype == dtype else (cast(scope, left, dtype), right)
    if _promotes_alike(left.type, right.type, dtype):
        return left, right
    if dtype == FLOATS:
        # What counts in few bits beside floats becomes of their dtype to torch as well.
        if "int" in (family(left.type.dtype), family(right.type.dtype)):
            return left, right
        known, other = (left, right) if right.type.dtype == FLOATS else (right, left)
        if known.type.has_dimensions and other.type.rank != 0:
            return left, right
        if left.type.dtype == FLOATS:
            return left, cast(scope, right, FLOATS, named(scope, left))
        return cast(scope, left, FLOATS, named(scope, right)), right
    return cast(scope, left, dtype), cast(scope, right, dtype)


def _without_bools(scope: Scope, one: Piece, other: Piece, dtype: str) -> Piece:
    if not one.type.is_array or one.type.dtype != "bool":
        return one
    return cast(scope, one, dtype, named(scope, other))


def _least(left: Piece, right: Piece) -> int:
    return max(left.type.least, right.type.least)


def named(scope: Scope, piece: Piece) -> str | None:
    """The name of an array of floats in `piece`, whose dtype is the one of all floats that are not known better."""
    for name in _NAME.findall(piece.text):
        kind = scope.names.get(name)
        if kind is not None and kind.is_array and kind.dtype == FLOATS:
            return str(name)
    return None


def _beside_number(scope: Scope, one: Piece, other: Piece, dtype: str) -> Piece:
    """`one` beside a number: torch makes its default dtype of ints and a float, and NumPy doubles."""
    own = one.type.dtype
    if own == dtype or (family(own) in ("int", "bool") and family(dtype) in ("int", "bool")):
        return one
    if other.type.what == "number" and other.type.dtype == "complex" and family(own) == "float":
        return one
    return cast(scope, one, dtype)


def _promotes_alike(left: Typed, right: Typed, dtype: str) -> bool:
    """Whether torch makes the same of both, as they have dimensions, which decide nothing then."""
    families = {family(left.dtype), family(right.dtype)}
    if families in ({"bool", "float"}, {"bool", "int"}, {"bool", "complex"}):
        return True
    if not left.has_dimensions or not right.has_dimensions:
        return False
    if families == {"float"}:
        return True
    if families <= {"float", "complex"}:
        return dtype in (left.dtype, right.dtype) and "float64" not in (left.dtype, right.dtype)
    wide = next(each for each in (left, right) if family(each.dtype) == family(dtype))
    return wide.dtype == dtype == "float64"
