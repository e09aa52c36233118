"""Functions of NumPy that go element by element, or put the elements of an axis together, as torch's.

Each says the dtype that NumPy gives and converts what torch would treat otherwise. What is here was compared with NumPy 2 on
arrays of single and double precision and of ints.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.arrays.array_pieces import (
    Given,
    Handler,
    Piece,
    cast,
    common,
    is_made_here,
    lifted,
    number,
)
from exportlens.rewriting.arrays.array_types import (
    RefusedUnlike,
    array,
    family,
    floating,
    joint,
    of_python,
    promoted,
    real_of,
)
from exportlens.rewriting.code.draft import Refused

# Of floats alone, under NumPy's name and torch's.
_OF_FLOATS = {
    **{name: name for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sinc")},
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "deg2rad", "rad2deg")},
    **{name: name for name in ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "reciprocal")},
    "radians": "deg2rad",
    "degrees": "rad2deg",
}
_KEEPING = {
    **{name: name for name in ("sign", "square", "floor", "ceil", "trunc", "negative", "positive", "conj")},
    "conjugate": "conj",
    "rint": "round",
    "fix": "trunc",
}
_ASKING = ("isnan", "isfinite", "isinf", "isposinf", "isneginf", "signbit", "logical_not")
_OPERATORS = {
    "add": ("add", "+"),
    "subtract": ("subtract", "-"),
    "multiply": ("multiply", "*"),
    "divide": ("divide", "/"),
    "true_divide": ("divide", "/"),
    "power": ("pow", "**"),
    "mod": ("remainder", "%"),
    "remainder": ("remainder", "%"),
    "floor_divide": ("floor_divide", "//"),
}
_COMPARING = {
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
}
_LOGICAL = ("logical_and", "logical_or", "logical_xor")
_OF_TWO = {"arctan2": "arctan2", "hypot": "hypot", "logaddexp": "logaddexp", "copysign": "copysign"}
_FOLDING = {"fmax": "fmax", "fmin": "fmin"}


def masked(handler: Handler) -> Handler:
    """`np.divide(a, b, out=np.zeros_like(a), where=b != 0)`, which leaves what it began with elsewhere."""

    def made(call: Given) -> Piece:
        if "out" not in call.given and "where" not in call.given:
            return handler(call)
        node = call.argument_node("out")
        if "where" not in call.given or not isinstance(node, ast.Call) or not is_made_here(node):
            raise Refused(
                f"`{call.name}` writes into an array that has a name, or leaves elements as they come"
            )
        test, rest, piece = call.array("where"), call.array("out"), handler(call)
        if test.type.dtype != "bool" or not piece.type.is_array:
            raise Refused(f"where `{call.name}` computes is not known to be an array of bools")
        if rest.type.dtype != piece.type.dtype:
            raise RefusedUnlike(f"`{call.name}` writes into an array of another dtype")
        ranks = [each.type.rank for each in (test, rest, piece)]
        text = f"{call.torch}.where({test.text}, {piece.text}, {rest.text})"
        return Piece(text, array(piece.type.dtype, joint(ranks)))

    return made


def of_floats(call: Given) -> Piece:
    one = call.array("a")
    dtype = floating(one.type.dtype)
    if call.name == "reciprocal" and family(one.type.dtype) != "float":
        raise RefusedUnlike("NumPy's reciprocal of whole numbers is a whole number")
    return call.out(_OF_FLOATS[call.name], cast(call.scope, one, dtype), [], dtype, one.type.rank)


def is_of_floats(name: str) -> bool:
    """Whether NumPy's function makes floats of whole numbers."""
    return name in _OF_FLOATS


def absolute(call: Given) -> Piece:
    one = call.array("a")
    if call.name == "fabs" and family(one.type.dtype) != "float":
        raise Refused("NumPy makes floats of whole numbers by `fabs`")
    return call.out("abs", one, [], real_of(one.type.dtype), one.type.rank)


def keeping(call: Given) -> Piece:
    one = call.array("a")
    if one.type.dtype == "bool" or (call.name == "fix" and family(one.type.dtype) != "float"):
        raise RefusedUnlike(f"NumPy's `{call.name}` of such an array is of another dtype")
    if call.name == "rint":
        one = cast(call.scope, one, floating(one.type.dtype))
    if family(one.type.dtype) == "complex" and call.name not in (
        "conj",
        "conjugate",
        "negative",
        "positive",
        "square",
    ):
        raise Refused(f"NumPy's `{call.name}` of complex numbers is another")
    return call.out(_KEEPING[call.name], one, [], one.type.dtype, one.type.rank)


def asking(call: Given) -> Piece:
    one = call.array("a")
    return call.out(call.name, one, [], "bool", one.type.rank)


def parts(call: Given) -> Piece:
    """`np.real`, `np.imag` and `np.angle`."""
    one = call.array("a")
    if call.name == "angle" and family(one.type.dtype) == "int":
        one = cast(call.scope, one, floating(one.type.dtype))
    complex_one = family(one.type.dtype) == "complex"
    if not complex_one and (call.name == "imag" or family(one.type.dtype) != "float"):
        raise Refused(f"torch has no `{call.name}` of such an array")
    return call.out(call.name, one, [], real_of(one.type.dtype), one.type.rank)


def rounded(call: Given) -> Piece:
    one = call.array("a")
    if family(one.type.dtype) != "float":
        raise Refused("NumPy rounds whole numbers to tens")
    more = [f"decimals={call.integer('decimals')}"] if "decimals" in call.given else []
    return call.out("round", one, more, one.type.dtype, one.type.rank)


def without_nan(call: Given) -> Piece:
    one = call.array("a")
    call.refuse("copy")
    if family(one.type.dtype) != "float":
        raise Refused("only floats can be no numbers")
    more = [f"{name}={call[name].text}" for name in ("nan", "posinf", "neginf") if name in call.given]
    if not all(call[name].type.is_number for name in ("nan", "posinf", "neginf") if name in call.given):
        raise Refused("what stands for what is no number is not known to be one")
    return call.out("nan_to_num", one, more, one.type.dtype, one.type.rank)


def operator(call: Given) -> Piece:
    """`np.add(a, b)`, by torch's function or by the operator where the first is a number."""
    from exportlens.rewriting.arrays.array_operators import computed

    function, sign = _OPERATORS[call.name]
    left, right, kind = computed(call.scope, call["a"], call["b"], sign)
    if not left.type.is_array:
        return Piece(f"{left.closed} {sign} {right.closed}", kind, False)
    return Piece(f"{call.torch}.{function}({left.text}, {right.text})", kind)


def comparing(call: Given) -> Piece:
    from exportlens.rewriting.arrays.array_operators import compared

    sign = _COMPARING[call.name]
    left, right, kind = compared(call.scope, call["a"], call["b"])
    return Piece(f"{left.closed} {sign} {right.closed}", kind, False)


def logical(call: Given) -> Piece:
    one, other = call.array("a"), call.array("b")
    return call.out(call.name, one, [other.text], "bool", joint([one.type.rank, other.type.rank]))


def of_two(call: Given) -> Piece:
    one, other = call["a"], call["b"]
    dtype = common([one, other])
    if call.name not in _FOLDING:
        dtype = floating(dtype)
    if family(dtype) == "complex":
        raise Refused(f"torch's `{call.name}` takes no complex numbers")
    like = one if one.type.is_array else other
    left, right = lifted(call.scope, one, dtype, like), lifted(call.scope, other, dtype, like)
    name = _OF_TWO.get(call.name, call.name)
    return call.out(name, left, [right.text], dtype, joint([left.type.rank, right.type.rank]))


def extreme(call: Given) -> Piece:
    """`np.maximum` and `np.minimum`: of an array and a number `torch.clamp`."""
    one, other = call["a"], call["b"]
    dtype = common([one, other])
    if family(dtype) == "complex":
        raise Refused(f"torch's `{call.name}` takes no complex numbers")
    rank = joint([each.type.rank for each in (one, other) if each.type.is_array])
    if one.type.is_array and other.type.is_array:
        left, right = cast(call.scope, one, dtype), cast(call.scope, other, dtype)
        return Piece(f"{call.torch}.{call.name}({left.text}, {right.text})", array(dtype, rank))
    held, bound = (one, other) if one.type.is_array else (other, one)
    side = "min" if call.name == "maximum" else "max"
    text = f"{call.torch}.clamp({cast(call.scope, held, dtype).text}, {side}={bound.text})"
    return Piece(text, array(dtype, rank))


def clipped(call: Given) -> Piece:
    one = call.array("a")
    bounds = {name: call[name] for name in ("min", "max") if call.has(name)}
    if not bounds:
        raise Refused("an array is clipped without bounds")
    dtype = common([one, *bounds.values()])
    if any(each.type.is_array for each in bounds.values()):
        bounds = {name: lifted(call.scope, each, dtype, one) for name, each in bounds.items()}
    rank = joint([each.type.rank for each in (one, *bounds.values()) if each.type.is_array])
    given = [f"{name}={each.text}" for name, each in bounds.items()]
    if len(given) == 2:
        given = [each.text for each in bounds.values()]
        return call.out("clip", cast(call.scope, one, dtype), given, dtype, rank)
    return call.out("clamp", cast(call.scope, one, dtype), given, dtype, rank)


def where(call: Given) -> Piece:
    test = call.array("test")
    if "a" not in call.given:
        from exportlens.rewriting.arrays.array_types import Typed

        # As many rows of indices as there are dimensions.
        found = Typed("tuple", items=(array("int64", 1),) * (test.type.rank or 1), grows=not test.type.rank)
        return Piece(f"{call.torch}.where({test.text})", found)
    if "b" not in call.given:
        raise Refused("`np.where` is given two of three arguments")
    test = cast(call.scope, test, "bool")
    one, other = call["a"], call["b"]
    ranks = [each.type.rank for each in (test, one, other) if each.type.is_array]
    if not one.type.is_array and not other.type.is_array:
        kinds = [_of_number(each) for each in (one, other)]
        dtype = promoted(*kinds)
        if dtype != "int64":
            one = lifted(call.scope, one, dtype)
    else:
        dtype = common([one, other])
        one, other = (cast(call.scope, each, dtype) if each.type.is_array else each for each in (one, other))
    return Piece(f"{call.torch}.where({test.text}, {one.text}, {other.text})", array(dtype, joint(ranks)))


def _of_number(piece: Piece) -> str:
    if not piece.type.is_number:
        raise Refused(f"`{piece.text}` is no array that was a tensor, and no number")
    return piece.type.dtype if piece.type.what == "constant" else of_python(piece.type.dtype)


def dims_of(call: Given) -> list[str]:
    """`dim` and `keepdim` as they are given."""
    more = [f"dim={call['axis'].text}"] if call.has("axis") else []
    if call.has("axis"):
        call.axes()
    if (keep := call.flag("keepdims")) is not None and keep != "False":
        if not more:
            raise Refused("all dimensions are kept with one element")
        more.append(f"keepdim={keep}")
    return more


def left_of(call: Given, rank: int | None) -> int | None:
    """How many dimensions are left of `rank`."""
    keep = call.flag("keepdims")
    if keep == "True":
        return rank
    if not call.has("axis"):
        return 0
    axes = call.axes()
    known = rank is not None and axes is not None and keep in (None, "False")
    return rank - len(axes) if known and rank is not None and axes is not None else None


def _is_one_axis(call: Given) -> bool:
    return call["axis"].type.what == "number"


def summed(call: Given) -> Piece:
    one = call.array("a")
    dtype = one.type.dtype
    if dtype.startswith("uint"):
        raise RefusedUnlike("NumPy adds up bytes to numbers without a sign")
    if call.name == "prod" and call.has("axis") and not _is_one_axis(call):
        raise Refused("torch multiplies along one axis")
    if family(dtype) in ("int", "bool"):
        dtype = "int64"
    more = dims_of(call)
    if "dtype" in call.given:
        dtype, _ = call.dtype()
        one = cast(call.scope, one, dtype)
    return call.out(_NAN.get(call.name, call.name), one, more, dtype, left_of(call, one.type.rank))


_NAN = {"nanmean": "nanmean", "nansum": "nansum"}


def averaged(call: Given) -> Piece:
    one = call.array("a")
    if family(one.type.dtype) in ("int", "bool"):
        one = cast(call.scope, one, "float64")
    if "dtype" in call.given:
        one = cast(call.scope, one, call.dtype()[0])
    return call.out(call.name, one, dims_of(call), one.type.dtype, left_of(call, one.type.rank))


def weighed(call: Given) -> Piece:
    one = call.array("a")
    more = dims_of(call)
    if not call.has("weights"):
        one = one if family(one.type.dtype) in ("float", "complex") else cast(call.scope, one, "float64")
        return Piece(
            f"{call.torch}.mean({', '.join([one.text, *more])})",
            array(one.type.dtype, left_of(call, one.type.rank)),
        )
    weights = call.array("weights")
    if one.type.rank is None or one.type.rank != weights.type.rank:
        raise Refused("weights of another shape than the array are spread along the axis")
    dtype = floating(promoted(one.type.dtype, weights.type.dtype))
    given, weights = cast(call.scope, one, dtype), cast(call.scope, weights, dtype)
    tail = "".join(f", {each}" for each in more)
    total = f"{call.torch}.sum({given.closed} * {weights.closed}{tail})"
    text = f"{total} / {call.torch}.sum({weights.text}{tail})"
    return Piece(text, array(dtype, left_of(call, one.type.rank)), False)


def spread(call: Given) -> Piece:
    """NumPy divides by the number of elements, torch by one less."""
    one = call.array("a")
    if family(one.type.dtype) in ("int", "bool"):
        one = cast(call.scope, one, "float64")
    if family(one.type.dtype) == "complex":
        raise Refused("the spread of complex numbers is not compared")
    free = call.integer("ddof") if "ddof" in call.given else "0"
    dtype = one.type.dtype
    return call.out(
        call.name, one, [*dims_of(call), f"correction={free}"], dtype, left_of(call, one.type.rank)
    )


def largest(call: Given) -> Piece:
    """`max` and `min`, of all or along axes."""
    one = call.array("a")
    short = {"amax": "max", "amin": "min"}.get(call.name, call.name)
    more = dims_of(call)
    if family(one.type.dtype) == "complex":
        raise Refused("complex numbers have no order in torch")
    return call.out(f"a{short}" if more else short, one, more, one.type.dtype, left_of(call, one.type.rank))


def between(call: Given) -> Piece:
    """`np.ptp`."""
    one = call.array("a")
    more = dims_of(call)
    names = ("amax", "amin") if more else ("max", "min")
    high, low = (f"{call.torch}.{each}({', '.join([one.text, *more])})" for each in names)
    return Piece(f"{high} - {low}", array(one.type.dtype, left_of(call, one.type.rank)), False)


def place_of(call: Given) -> Piece:
    one = call.array("a")
    if call.has("axis") and not _is_one_axis(call):
        raise Refused("an index is found along one axis")
    if one.type.dtype == "bool" or family(one.type.dtype) == "complex":
        one = cast(call.scope, one, "uint8") if one.type.dtype == "bool" else one
    return call.out(call.name, one, dims_of(call), "int64", left_of(call, one.type.rank))


def of_truth(call: Given) -> Piece:
    one = cast(call.scope, call.array("a"), "bool")
    return call.out(call.name, one, dims_of(call), "bool", left_of(call, one.type.rank))


def counted(call: Given) -> Piece:
    one = call.array("a")
    more = [f"dim={call['axis'].text}"] if call.has("axis") else []
    return call.out("count_nonzero", one, more, "int64", left_of(call, one.type.rank))


def running(call: Given) -> Piece:
    """`cumsum` and `cumprod`: of all elements in a row without an axis."""
    one = call.array("a")
    if one.type.dtype.startswith("uint"):
        raise RefusedUnlike("NumPy adds up bytes to numbers without a sign")
    dtype = "int64" if family(one.type.dtype) in ("int", "bool") else one.type.dtype
    if not call.has("axis"):
        flat = one if one.type.rank == 1 else Piece(f"{one.closed}.flatten()", one.type)
        return call.out(call.name, flat, ["dim=0"], dtype, 1)
    return call.out(call.name, one, [f"dim={call.integer('axis')}"], dtype, one.type.rank)


_SHARES = {"percentile": 100, "quantile": 1, "nanpercentile": 100, "nanquantile": 1}


def quantile(call: Given) -> Piece:
    """`np.median`, `np.percentile` and their kin."""
    one = call.array("a")
    if family(one.type.dtype) not in ("float", "int") or one.type.dtype == "float16":
        raise Refused("torch knows quantiles of floats alone")
    if family(one.type.dtype) == "int":
        one = cast(call.scope, one, "float64")
    if call.has("axis") and not _is_one_axis(call):
        raise Refused("torch finds quantiles along one axis")
    if call.given.get("method", number("linear")).type.value != "linear":
        raise Refused("torch finds quantiles between elements, as NumPy does by default")
    rank = left_of(call, one.type.rank)
    if call.name in ("median", "nanmedian"):
        share = "0.5"
    else:
        share, several = _shares(call, _SHARES[call.name])
        if several:
            # NumPy makes an array of doubles of what is asked for, and computes in that.
            one = cast(call.scope, one, "float64")
            rank = None if rank is None else rank + 1
    name = "nanquantile" if call.name.startswith("nan") else "quantile"
    text = f"{call.torch}.{name}({', '.join([one.text, share, *dims_of(call)])})"
    return Piece(text, array(one.type.dtype, rank))


def _shares(call: Given, whole: int) -> tuple[str, bool]:
    """What is asked for as shares of one, and whether it is several."""
    asked = call["q"]
    if asked.type.what == "number":
        return _share(asked, whole), False
    if asked.type.is_array and asked.type.rank == 1 and family(asked.type.dtype) in ("float", "int"):
        row = cast(call.scope, asked, "float64")
        return row.text if whole == 1 else f"{row.closed} / {whole}", True
    items = call.items("q")
    if items is None or not items or any(each.type.what != "number" for each in items):
        raise Refused(f"which quantiles `{asked.text}` asks for is not written out")
    shares = ", ".join(_share(each, whole) for each in items)
    return f"{call.torch}.tensor([{shares}], dtype={call.torch}.float64)", True


def _share(asked: Piece, whole: int) -> str:
    if whole == 1:
        return asked.text
    written = asked.text.replace(".", "", 1).isdigit()
    return repr(float(asked.text) / whole) if written else f"{asked.closed} / {whole}"


def functions() -> dict[str, tuple[Handler, str, int]]:
    """The handlers by NumPy's names, with the parameters they know and how many of them must be given."""
    table: dict[str, tuple[Handler, str, int]] = {}
    for name in _OF_FLOATS:
        table[name] = (masked(of_floats), "a out where", 1)
    for name in _KEEPING:
        table[name] = (keeping, "a", 1)
    for name in ("abs", "absolute", "fabs"):
        table[name] = (absolute, "a", 1)
    for name in _ASKING:
        table[name] = (asking, "a", 1)
    for name in ("real", "imag", "angle"):
        table[name] = (parts, "a", 1)
    for name in ("round", "around"):
        table[name] = (rounded, "a decimals", 1)
    table["nan_to_num"] = (without_nan, "a/x copy nan posinf neginf", 1)
    for name in _OPERATORS:
        table[name] = (masked(operator), "a b out where", 2)
    for name in _COMPARING:
        table[name] = (comparing, "a b", 2)
    for name in _LOGICAL:
        table[name] = (logical, "a b", 2)
    for name in (*_OF_TWO, *_FOLDING):
        table[name] = (of_two, "a b", 2)
    for name in ("maximum", "minimum"):
        table[name] = (extreme, "a b", 2)
    table["clip"] = (clipped, "a min/a_min max/a_max", 1)
    table["where"] = (where, "test a b", 1)
    for name in ("sum", "prod", "nansum"):
        table[name] = (summed, "a axis dtype unknown_out keepdims", 1)
    for name in ("mean", "nanmean"):
        table[name] = (averaged, "a axis dtype unknown_out keepdims", 1)
    table["average"] = (weighed, "a axis weights unknown_returned keepdims", 1)
    for name in ("std", "var"):
        table[name] = (spread, "a axis unknown_dtype unknown_out ddof keepdims", 1)
    for name in ("max", "min", "amax", "amin", "ptp"):
        table[name] = (between if name == "ptp" else largest, "a axis unknown_out keepdims", 1)
    for name in ("argmax", "argmin"):
        table[name] = (place_of, "a axis unknown_out keepdims", 1)
    for name in ("all", "any"):
        table[name] = (of_truth, "a axis unknown_out keepdims", 1)
    table["count_nonzero"] = (counted, "a axis", 1)
    for name in ("cumsum", "cumprod"):
        table[name] = (running, "a axis", 1)
    for name in ("median", "nanmedian"):
        table[name] = (quantile, "a axis unknown_out unknown_overwrite keepdims", 1)
    for name in _SHARES:
        table[name] = (quantile, "a q axis unknown_out unknown_overwrite method keepdims", 2)
    return table
