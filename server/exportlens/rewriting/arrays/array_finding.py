"""Functions of NumPy that find, choose and add elements, or ask how many there are, as torch's."""

from __future__ import annotations

from exportlens.rewriting.arrays.array_pieces import Given, Handler, Piece, cast, common, lifted
from exportlens.rewriting.arrays.array_types import (
    SIZE,
    RefusedUnlike,
    Typed,
    array,
    family,
    of_python,
    promoted,
)
from exportlens.rewriting.code.draft import Refused


def found(call: Given) -> Piece:
    """`np.nonzero`, `np.argwhere` and `np.flatnonzero`."""
    one = call.array("a")
    if call.name == "nonzero":
        rank = one.type.rank
        kind = Typed("tuple", items=(array("int64", 1),) * (rank or 1), grows=not rank)
        return Piece(f"{call.torch}.nonzero({one.text}, as_tuple=True)", kind)
    if call.name == "argwhere":
        return Piece(f"{call.torch}.argwhere({one.text})", array("int64", 2))
    flat = one.text if one.type.rank == 1 else f"{one.closed}.flatten()"
    return Piece(f"{call.torch}.nonzero({flat}, as_tuple=True)[0]", array("int64", 1))


def different(call: Given) -> Piece:
    """`np.unique` of whole numbers: of floats NumPy keeps one NaN, and torch all of them. The places of the numbers among those have
    the shape of the array, as NumPy 2 has them."""
    one = call.array("a")
    if family(one.type.dtype) not in ("int", "bool"):
        raise RefusedUnlike("NumPy keeps one NaN of several, and torch all of them")
    options = ("return_inverse", "return_counts")
    if any(call.flag(each) not in (None, "True", "False") for each in options):
        raise Refused("whether numbers are counted, or their places are given, is not written out")
    wanted = [each for each in options if call.flag(each) == "True"]
    text = f"{call.torch}.unique({one.text}{''.join(f', {each}=True' for each in wanted)})"
    values = array(one.type.dtype, 1)
    parts = {"return_inverse": array("int64", one.type.rank), "return_counts": array("int64", 1)}
    kind = Typed("tuple", items=(values, *(parts[each] for each in wanted))) if wanted else values
    return Piece(text, kind)


def appended(call: Given) -> Piece:
    """`np.append`: in a row where no axis is given."""
    one, other = call["a"], call["b"]
    if not one.type.is_array and not other.type.is_array:
        raise Refused("not all that NumPy is given together is an array that was a tensor")
    kinds = [
        each.type.dtype if each.type.is_array or each.type.what == "constant" else "" for each in (one, other)
    ]
    kinds = [kind or of_python(each.type.dtype) for kind, each in zip(kinds, (one, other), strict=True)]
    if any(not each.type.is_array and not each.type.is_number for each in (one, other)):
        raise Refused("not all that NumPy is given together is an array that was a tensor, or a number")
    dtype = promoted(*kinds)
    texts = []
    for each in (one, other):
        if each.type.is_number:
            if dtype in ("floats", "complexes"):
                raise Refused(
                    f"`{each.text}` becomes of the dtype of another array, of which only the kind is known"
                )
            texts.append(f"{call.torch}.tensor([{each.text}], dtype={call.torch}.{dtype})")
            continue
        like = one.text if one.text.isidentifier() and one.type.dtype == dtype else None
        made = cast(call.scope, each, dtype, like)
        texts.append(made.text if call.has("axis") or each.type.rank == 1 else f"{made.closed}.flatten()")
    axis = call.integer("axis") if call.has("axis") else "0"
    if call.has("axis") and any(each.type.is_number for each in (one, other)):
        raise Refused("a number is put beside an array along an axis")
    more = f", dim={axis}" if call.has("axis") else ""
    return Piece(f"{call.torch}.cat([{', '.join(texts)}]{more})", array(dtype, one.type.rank if more else 1))


def chosen(call: Given) -> Piece:
    """`np.select`: the first choice whose condition holds."""
    tests, choices = call.items("tests"), call.items("choices")
    if not tests or choices is None or len(tests) != len(choices):
        raise Refused("not all conditions and choices are written out")
    if any(not each.type.is_array or each.type.dtype != "bool" for each in tests):
        raise Refused("not all conditions are known to be arrays of bools")
    rest = call["default"] if "default" in call.given else Piece("0", Typed("number", "int", value=0))
    parts = [*choices, rest]
    arrays = [each for each in parts if each.type.is_array]
    if any(not each.type.is_array and each.type.what != "number" for each in parts):
        raise Refused("not all choices are known to be arrays that were tensors, or numbers")
    if arrays:
        dtype = common(parts)
    else:
        dtype = of_python(parts[0].type.dtype)
        for each in parts[1:]:
            dtype = promoted(dtype, of_python(each.type.dtype))
    like = next((each for each in arrays if each.type.dtype == dtype), None)
    text = lifted(call.scope, rest, dtype, like).text
    for test, choice in zip(reversed(tests), reversed(choices), strict=True):
        one = (
            cast(call.scope, choice, dtype, like.text if like is not None else None)
            if choice.type.is_array
            else choice
        )
        text = f"{call.torch}.where({test.text}, {one.text}, {text})"
    ranks = [each.type.rank for each in (*tests, *arrays)]
    return Piece(text, array(dtype, None if None in ranks else max(each or 0 for each in ranks)))


def turned(call: Given) -> Piece:
    """`np.rot90` in the first two dimensions."""
    one = call.array("a")
    if call.must_copy:
        raise RefusedUnlike("NumPy turns round without copying, and an array or a tensor is written to")
    more = [call.integer("k")] if "k" in call.given else []
    if call.has("axes"):
        call.axes("axes")
        more.append(f"dims={call['axes'].text}")
    return Piece(f"{call.torch}.rot90({', '.join([one.text, *more])})", one.type)


def asked(call: Given) -> Piece:
    """`np.shape`, `np.ndim` and `np.size` of an array."""
    one = call.array("a")
    if call.name == "shape":
        return Piece(f"{one.closed}.shape", Typed("shape", rank=one.type.rank))
    if call.name == "ndim":
        return Piece(f"{one.closed}.ndim", SIZE)
    if call.has("axis"):
        return Piece(f"{one.closed}.shape[{call.integer('axis')}]", SIZE)
    return Piece(f"{one.closed}.numel()", SIZE)


def converted(call: Given) -> Piece:
    """`np.float32(a)`."""
    one = call.array("a")
    if family(one.type.dtype) == "complex":
        raise RefusedUnlike("NumPy drops the imaginary parts")
    made = cast(call.scope, one, call.name)
    return made if made.text != one.text or not call.must_copy else Piece(f"{one.closed}.clone()", one.type)


def functions() -> dict[str, tuple[Handler, str, int]]:
    return {
        **dict.fromkeys(("nonzero", "argwhere", "flatnonzero"), (found, "a", 1)),
        "unique": (different, "a unknown_return_index return_inverse return_counts", 1),
        "append": (appended, "a/arr b/values axis", 2),
        "select": (chosen, "tests/condlist choices/choicelist default", 2),
        "rot90": (turned, "a/m k axes", 1),
        **dict.fromkeys(("shape", "ndim"), (asked, "a", 1)),
        **dict.fromkeys(("float32", "float64", "int32", "int64"), (converted, "a", 1)),
        "size": (asked, "a axis", 1),
    }
