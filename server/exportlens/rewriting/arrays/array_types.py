"""What an array is to NumPy: its dtype and how many dimensions it has, and which dtype two of them make together.

NumPy decides dtypes otherwise than torch: a number of NumPy's own is as strong as an array, an array of ints and a float make
doubles, and what has no dimensions counts as much as what has some (NEP 50, measured with NumPy 2).
"""

from __future__ import annotations

import ast
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from exportlens.rewriting.code.draft import Refused

# The dtype of an array of floats whose width is not known, and of the complex numbers made of them.
FLOATS, COMPLEXES = "floats", "complexes"
_INTS = ("int8", "int16", "int32", "int64")
_WIDE = ("int32", "int64", "float64")


class RefusedUnlike(Refused):
    """NumPy does something else there than torch."""


class RefusedRounds(RefusedUnlike):
    """The first round of a loop finds something else than the others."""


class RefusedIndex(Refused):
    """Floats pick from an array: one of the arrays that are taken for floats must hold something else."""

    assumed: AbstractSet[ast.AST] = frozenset()


@dataclass(frozen=True, slots=True)
class Typed:
    """What an expression is.

    `what`: "array" (an array or a number of NumPy's that becomes a tensor), "held" (one that NumPy makes without
    tensors), "constant" (a number of NumPy's that stays), "number" (a number of Python's), "shape", "dtype", "tensor", "tuple",
    "dict" (its keys are `value`) and "list" (with `items`; a list that grows has the one that each of it is), "none", "text",
    "other", and "unlike" (one array or another, or none that can be used).
    """

    what: str
    # Of a number of Python's: "int", "float", "bool", "complex", or "" where that is not known.
    dtype: str = ""
    rank: int | None = None
    items: tuple[Typed, ...] = ()
    # The number that is written there.
    value: object = None
    # The calls that made what is "held".
    origins: frozenset[object] = frozenset()
    # Whether the values certainly go up.
    ascends: bool = False
    # A list of as many as are put into it.
    grows: bool = False
    # How many dimensions an array has at least.
    least: int = 0
    # Whether an array of floats may be a number of Python's as well, which operators take as they take the array.
    or_number: bool = False
    # What a whole number is at least; None where that is not known.
    lowest: int | None = None
    # Whether it is the size of a dimension.
    of_dimension: bool = False
    # The name of the tensor, and its dtype, that an array was made of which is made doubles first where it holds ints; an array
    # that is made like it has that dtype.
    made_of: tuple[str, str] | None = None

    @property
    def has_dimensions(self) -> bool:
        return bool(self.rank or self.least)

    @property
    def is_array(self) -> bool:
        return self.what == "array"

    @property
    def is_number(self) -> bool:
        return self.what in ("number", "constant")

    @property
    def holds_arrays(self) -> bool:
        return self.what in ("array", "unlike") or any(each.holds_arrays for each in self.items)

    @property
    def least_value(self) -> int | None:
        """What a whole number is at least; None where that is not known."""
        return self.value if isinstance(self.value, int) else self.lowest

    @property
    def made_by(self) -> frozenset[object]:
        """The calls that made what is held in it."""
        return self.origins.union(*(each.made_by for each in self.items))

    @property
    def is_held(self) -> bool:
        return self.what == "held" or any(each.is_held for each in self.items)


OTHER = Typed("other")
UNLIKE = Typed("unlike")
NONE = Typed("none")
INT = Typed("number", "int")
SIZE = Typed("number", "int", lowest=0, of_dimension=True)
TENSOR = Typed("tensor")


def array(dtype: str, rank: int | None = None, least: int = 0) -> Typed:
    return Typed("array", dtype, rank, least=rank if rank is not None else least)


def merged(one: Typed, other: Typed) -> Typed:
    """What a name is that is one or the other."""
    if one == other:
        return one
    if one.what != other.what or len(one.items) != len(other.items) or one.grows != other.grows:
        if one.what == other.what == "list" and (one.grows or other.grows):
            return _lists(one, other)
        return _array_or_number(one, other) or _unlike(one, other)
    items = tuple(merged(*pair) for pair in zip(one.items, other.items, strict=True))
    # Floats of a width that is not known are taken for those of one that is.
    floats = one.is_array and FLOATS in (one.dtype, other.dtype) and family(one.dtype) == family(other.dtype)
    if one.dtype != other.dtype and not one.is_number and not floats:
        return _unlike(one, other)
    return replace(
        one,
        dtype=one.dtype if one.dtype == other.dtype else FLOATS if floats else "",
        rank=one.rank if one.rank == other.rank else None,
        items=items,
        value=None if one.value != other.value else one.value,
        origins=one.origins | other.origins,
        ascends=one.ascends and other.ascends,
        made_of=one.made_of if one.made_of == other.made_of else None,
        least=min(one.least, other.least),
        or_number=one.or_number or other.or_number,
        lowest=None if one.lowest is None or other.lowest is None else min(one.lowest, other.lowest),
    )


def _lists(one: Typed, other: Typed) -> Typed:
    """A list that grows, or the one that is written there with what it begins with."""
    items = [*one.items, *other.items]
    if not items:
        return Typed("list", grows=True)
    found = items[0]
    for each in items[1:]:
        found = merged(found, each)
    return Typed("list", items=(found,), grows=True)


def _array_or_number(one: Typed, other: Typed) -> Typed | None:
    """What is an array of floats, or a number beside which NumPy computes in the dtype of the array all the same."""
    held, number = (one, other) if one.is_array else (other, one)
    if not held.is_array or family(held.dtype) != "float":
        return None
    if number.what != "number" or number.dtype not in ("int", "float"):
        return None
    return replace(held, rank=0 if held.rank == 0 else None, least=0, ascends=False, or_number=True)


def _unlike(one: Typed, other: Typed) -> Typed:
    return UNLIKE if one.holds_arrays or other.holds_arrays else OTHER


def family(dtype: str) -> str:
    """ "bool", "int", "float" or "complex"."""
    if dtype == "bool":
        return "bool"
    if dtype in (FLOATS, "float") or dtype.startswith("float"):
        return "float"
    if dtype.startswith("complex"):
        return "complex"
    return "int"


def promoted(one: str, other: str) -> str:
    """The dtype that NumPy makes of two that are as strong as each other. Raises Refused where that is not known."""
    if one == other:
        return one
    for first, second in ((one, other), (other, one)):
        if first == "bool":
            return second
        if first == COMPLEXES and family(second) != "complex":
            return "complex128" if second in _WIDE else COMPLEXES
        if first == FLOATS and second not in (FLOATS, "complex64", COMPLEXES):
            if family(second) == "complex":
                return "complex128"
            return "float64" if second in _WIDE else FLOATS
        if first == "uint8" and second in _INTS:
            return "int16" if second == "int8" else second
        if first in _INTS and second in _INTS:
            return max(first, second, key=_INTS.index)
    families = {family(one): one, family(other): other}
    wide = one in _WIDE or other in _WIDE
    if FLOATS in (one, other) or COMPLEXES in (one, other):
        raise Refused(f"which dtype NumPy makes of {one} and {other} is not known")
    if "complex" in families:
        return "complex128" if wide or "complex128" in (one, other) else "complex64"
    if set(families) == {"float"}:
        return "float64" if wide else "float32"
    if wide:
        return "float64"
    return families["float"] if "int16" not in (one, other) else "float32"


def beside(dtype: str, number: Typed) -> str:
    """The dtype that NumPy makes of an array of `dtype` and a number."""
    if number.what == "constant":
        return promoted(dtype, number.dtype)
    mine, kind = family(dtype), number.dtype
    if kind == "" and mine in ("bool", "int"):
        raise Refused("whether an int or a float is computed with an array of ints is not known")
    if kind in ("", "bool") or mine == "complex":
        return dtype
    if kind == "complex":
        if mine != "float":
            return "complex128"
        return {FLOATS: COMPLEXES, "float64": "complex128"}.get(dtype, "complex64")
    if kind == "float" and mine != "float":
        return "float64"
    return "int64" if dtype == "bool" else dtype


def of_python(kind: str) -> str:
    """The dtype of an array that NumPy makes of Python's numbers alone."""
    known = {"int": "int64", "float": "float64", "bool": "bool", "complex": "complex128"}
    if kind not in known:
        raise Refused("of which type a number is that NumPy makes an array of is not known")
    return known[kind]


def floating(dtype: str) -> str:
    """The dtype of what NumPy's functions of floats make of an array. Raises Refused for halves."""
    if family(dtype) in ("float", "complex"):
        return dtype
    if dtype in ("int32", "int64"):
        return "float64"
    if dtype == "int16":
        return "float32"
    raise RefusedUnlike("NumPy gives floats of few bits for bools and bytes")


def real_of(dtype: str) -> str:
    """The dtype of the parts of complex numbers."""
    return {COMPLEXES: FLOATS, "complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def complex_of(dtype: str) -> str:
    """The dtype of the Fourier transform of an array."""
    known = {FLOATS: COMPLEXES, "float32": "complex64", "float64": "complex128"}
    return known.get(dtype, "complex128" if family(dtype) != "complex" else dtype)


def joint(ranks: list[int | None]) -> int | None:
    """How many dimensions arrays have that are broadcast together."""
    known = [each for each in ranks if each is not None]
    return max(known) if known and len(known) == len(ranks) else None
