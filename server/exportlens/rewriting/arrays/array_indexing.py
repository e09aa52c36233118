"""What an array is picked from by: slices, numbers, masks and arrays of indices, as NumPy and torch both take them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from exportlens.rewriting.arrays.array_memory import is_kept, is_written
from exportlens.rewriting.arrays.array_pieces import Piece, is_made_here
from exportlens.rewriting.arrays.array_types import NONE, RefusedIndex, RefusedUnlike, array, family
from exportlens.rewriting.arrays.numpy_integers import given_to_name
from exportlens.rewriting.code.draft import Refused

if TYPE_CHECKING:
    from exportlens.rewriting.arrays.array_reading import Reading


@dataclass
class Index:
    """The parts of an index with their new texts, and how many dimensions are left."""

    parts: list[tuple[ast.expr, Piece]]
    rank: int | None
    least: int
    # The dimensions that are turned round.
    flipped: list[int]
    # Whether elements are picked one by one, so that torch converts nothing that is written there.
    picks: bool
    # How many dimensions are indexed.
    used: int = 0
    # Whether all dimensions that are known of are indexed by numbers.
    of_numbers: bool = False


def indexed(reading: Reading, node: ast.Subscript, owner: Piece) -> Piece:
    """`owner[index]` as it is read."""
    index = index_of(reading, node, owner)
    kind = array(owner.type.dtype, index.rank, index.least)
    if index.flipped:
        call = reading.source.parents.get(node)
        copied = isinstance(call, ast.Attribute) and call.attr == "copy"
        if reading.copies and not copied and not is_made_here(node.value) and reading.is_written_after(node):
            raise RefusedUnlike("NumPy turns round without copying, and an array or a tensor is written to")
        dims = ", ".join(map(str, index.flipped))
        return Piece(f"{owner.closed}.flip({dims})", kind)
    if isinstance(node.slice, ast.Slice) and node.slice.step is None and owner.type.rank == 1:
        kind = replace(kind, ascends=owner.type.ascends)
    made = reading.splice(node, [(node.value, owner), *index.parts], kind)
    number = index.of_numbers and index.rank in (0, None)
    number = number and max(owner.type.least, _least(reading, node.value)) <= index.used
    written = number and reading.copies and is_kept(reading.source, node) and reading.is_written_after(node)
    if not written or not is_written(reading.source, node.value, reading.writing):
        return made
    if index.rank == 0:
        return Piece(f"{made.text}.clone()", kind)
    if not owner.text.isidentifier():
        raise RefusedUnlike(
            f"whether `{made.text}` is a number, which NumPy copies, or a row of what is written to is not known"
        )
    text = f"{made.text}.clone() if {owner.text}.dim() == {index.used} else {made.text}"
    return Piece(text, kind, False)


def _least(reading: Reading, node: ast.expr) -> int:
    """How many dimensions the array under a name has at least, as other indices of it say."""
    function = reading.source.enclosing_function(node)
    if not isinstance(node, ast.Name) or function is None or len(given_to_name(node.id, function)) > 1:
        return 0
    parts = [
        len([one for one in each.slice.elts if not isinstance(one, ast.Constant) or type(one.value) is int])
        for each in ast.walk(function)
        if isinstance(each, ast.Subscript)
        and isinstance(each.value, ast.Name)
        and each.value.id == node.id
        and isinstance(each.slice, ast.Tuple)
    ]
    return max(parts, default=0)


def index_of(reading: Reading, node: ast.Subscript, owner: Piece) -> Index:
    """The index of `node`. Raises Refused where torch does not take it as NumPy does."""
    nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    parts: list[tuple[ast.expr, Piece]] = []
    used = added = 0
    seen: list[str] = []
    turned: list[int] = []
    known = True
    picked: int | None = None
    for place, each in enumerate(nodes):
        if isinstance(each, ast.Slice):
            turns = _slice(reading, each, parts)
            used += 1
            added += 1
            seen.append("slice")
            if turns:
                ellipsis = any(_is_ellipsis(one) for one in nodes[:place])
                turned.append(place - len(nodes) if ellipsis else place)
            continue
        if _is_ellipsis(each):
            seen.append("ellipsis")
            continue
        piece = reading.piece(each)
        if piece.type == NONE:
            parts.append((each, piece))
            added += 1
            seen.append("none")
            continue
        piece = reading.unheld(each, piece)
        kind = piece.type
        parts.append((each, piece))
        if (
            kind.what == "tuple"
            and kind.items
            and all(one.is_array for one in kind.items)
            and len(nodes) == 1
        ):
            used += len(kind.items)
            known = known and not kind.grows
            seen.append("array")
            picked = 1
        elif kind.is_array and kind.dtype == "bool":
            used += kind.rank or 0
            known = known and kind.rank is not None
            seen.append("array")
            picked = max(picked or 0, 1)
        elif kind.is_array and kind.dtype in ("int32", "int64"):
            used += 1
            seen.append("array" if kind.rank != 0 else "number")
            if kind.rank is None:
                known = False
            elif kind.rank:
                picked = max(picked or 0, kind.rank)
        elif kind.what == "list" and kind.items and all(one.dtype in ("int", "bool") for one in kind.items):
            used += 1
            seen.append("array")
            picked = max(picked or 0, 1)
        elif kind.what in ("number", "constant") and kind.dtype in ("int", "", "int64"):
            used += 1
            seen.append("number")
        elif kind.is_array and kind.dtype == "uint8":
            raise RefusedUnlike(
                "a tensor of uint8 is a mask where it is an index, an array of it holds numbers"
            )
        elif kind.is_array and family(kind.dtype) == "float":
            raise RefusedIndex(f"`{piece.text}`, which picks from an array, is not known to hold ints")
        else:
            raise Refused(f"what `{piece.text}` picks is not known")
    _refuse_apart(seen)
    if turned and (parts or set(seen) - {"slice", "ellipsis"}):
        raise Refused("tensors take no slice with a negative step beside other indices")
    rank = owner.type.rank
    left = rank - used + added + (picked or 0) if known and rank is not None else None
    of_numbers = set(seen) <= {"number"}
    return Index(parts, left, added + (picked or 0), turned, "array" in seen, used, of_numbers)


def _slice(reading: Reading, node: ast.Slice, parts: list[tuple[ast.expr, Piece]]) -> bool:
    """Whether `node` turns the dimension round; what it is cut by must be numbers."""
    step = node.step
    if isinstance(step, ast.UnaryOp):
        if node.lower is None and node.upper is None and ast.unparse(step) == "-1":
            return True
        raise Refused("tensors take no slice with a negative step")
    for each in (node.lower, node.upper, step):
        if each is None:
            continue
        piece = reading.piece(each)
        if piece.type.what == "none":
            continue
        if piece.type.what not in ("number", "constant") or (each is step and piece.type.value is None):
            raise Refused(f"where `{reading.source.of(node)}` is cut is not known to be a number")
        parts.append((each, piece))
    return False


def _refuse_apart(seen: list[str]) -> None:
    """NumPy takes a number for an array of indices where there is one, and puts what they pick first where they stand apart."""
    if "array" not in seen:
        return
    places = [index for index, each in enumerate(seen) if each in ("array", "number")]
    between = seen[places[0] : places[-1] + 1]
    if "number" in between and set(between) - {"array", "number"}:
        raise RefusedUnlike("numbers and arrays of indices stand apart, which torch puts in another order")


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def fits(owner: Piece, value: Piece) -> None:
    """Raise Refused where what is written is cut off by NumPy to fit the array, and not so by torch."""
    if value.type.is_array:
        if family(value.type.dtype) == "complex" and family(owner.type.dtype) != "complex":
            raise RefusedUnlike("NumPy drops the imaginary parts")
        return
    if not value.type.is_number:
        raise Refused(
            f"`{value.text}`, which is written into an array, is not known to be a number or an array"
        )
