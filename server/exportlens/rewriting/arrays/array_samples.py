"""Functions of NumPy on samples and signals, as torch's: how they vary together, how many fall where, and what lies between points.

NumPy computes most of these in double precision whatever it is given. What is here was compared with NumPy 2 on arrays of single
and double precision and of ints.
"""

from __future__ import annotations

import ast
import math
import struct
from dataclasses import replace

from exportlens.rewriting.arrays.array_functions import dims_of, left_of
from exportlens.rewriting.arrays.array_pieces import Given, Handler, Piece, cast
from exportlens.rewriting.arrays.array_types import RefusedUnlike, Typed, array, family, promoted
from exportlens.rewriting.code.draft import Refused

# What may be called twice for once.
_PURE = frozenset(
    {"arange", "as_tensor", "cpu", "detach", "double", "flatten", "float", "full", "is_floating_point", "linspace", "long", "movedim",
     "ones", "reshape", "stack", "tensor", "to", "zeros"}
)  # fmt: skip
_PLAIN = (
    *(ast.Name, ast.Attribute, ast.Constant, ast.UnaryOp, ast.BinOp, ast.IfExp, ast.List, ast.Tuple),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.keyword),
)


def twice(piece: Piece) -> str:
    """The text of `piece` where it is to stand more than once. Raises Refused where much would be computed again."""
    for each in ast.walk(ast.parse(piece.text, mode="eval").body):
        picked = isinstance(each, ast.Subscript) and isinstance(each.slice, (ast.Constant, ast.Name))
        called = (
            isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _PURE
        )
        if not (isinstance(each, _PLAIN) or picked or called):
            raise Refused(f"`{piece.text}` would be computed twice: give it a name first")
    return piece.closed


def named(call: Given, piece: Piece, wish: str) -> tuple[str, str]:
    """The text of `piece` where it is computed, and where it is needed again."""
    if all(each.isidentifier() for each in piece.text.split(".")):
        return piece.text, piece.text
    try:
        name = call.scope.free_name(call.node, wish)
    except Refused:
        return twice(piece), twice(piece)
    return f"({name} := {piece.text})", name


def varied(call: Given) -> Piece:
    """`np.cov` and `np.corrcoef`: in double precision, of one array of rows or columns or of two rows."""
    one = call.array("a")
    if family(one.type.dtype) == "complex":
        raise Refused("how complex numbers vary together is not compared")
    one = cast(call.scope, one, "float64")
    rank = one.type.rank
    rows = call.flag("rowvar")
    if rows not in (None, "True", "False", "1", "0"):
        raise Refused("whether rows or columns vary is not written out")
    if call.has("b"):
        other = cast(call.scope, call.array("b"), "float64")
        given = [one.text, other.text]
        if (rank, other.type.rank) != (1, 1):
            if rows in ("False", "0"):
                raise Refused("how columns of two tables vary together is not compared")
            given = [f"{call.torch}.atleast_2d({each})" for each in given]
        together = "stack" if (rank, other.type.rank) == (1, 1) else "cat"
        rank = 2
        one = Piece(f"{call.torch}.{together}([{', '.join(given)}])", one.type)
    elif rows in ("False", "0") and rank != 1:
        one = Piece(f"{one.closed}.{'T' if rank == 2 else 'movedim(-1, 0)'}", one.type)
    text, again = named(call, one, "rows")
    # `torch.cov` compares how many there are, which is not exported.
    name = call.scope.free_name(call.node, "centred")
    centred = f"({name} := {text} - {again}.mean(-1, keepdim=True))"
    if call.name == "cov":
        made = f"{call.torch}.inner({centred}, {name})"
        made = f"{made if rank == 1 else f'{made}.squeeze()'} / {_divisor(call, name)}"
    else:
        unit = call.scope.free_name(call.node, "unit")
        share = f"({unit} := {centred} / {name}.norm(dim=-1, keepdim=True))"
        made = f"{call.torch}.inner({share}, {unit}).squeeze().clip(-1, 1)"
    # Of one row alone both give a number.
    found = 2 if call.has("b") else 0 if rank == 1 else None
    return Piece(made, array("float64", found), call.name != "cov")


def _divisor(call: Given, name: str) -> str:
    """What `np.cov` divides by: how many there are, less one where nothing else is said."""
    biased = call.flag("bias")
    if biased not in (None, "True", "False") or (biased is not None and call.has("ddof")):
        raise Refused("by how many what varies is divided is not written out")
    size = f"{name}.shape[-1]"
    free = call.integer("ddof") if call.has("ddof") else "0" if biased == "True" else "1"
    if free in ("0", "1"):
        return size if free == "0" else f"({size} - 1)"
    return f"max({size} - {free}, 0)"


def between(call: Given) -> Piece:
    """`np.interp` between points that certainly go to the right: what is there adds up from the first point on."""
    one, places, values = call.array("a"), call.array("xp"), call.array("fp")
    if not places.type.ascends:
        raise Refused(
            f"whether `{places.text}` goes up everywhere, so that there is one line between two points, is not known"
        )
    if values.type.rank != 1 or places.type.rank != 1 or family(values.type.dtype) not in ("float", "int"):
        raise Refused(f"`{values.text}` is not known to be one row of numbers")
    begun, given = named(call, cast(call.scope, values, "float64"), "heights")
    first, at = named(call, cast(call.scope, places, "float64"), "places")
    moved = f"({cast(call.scope, one, 'float64').closed}[..., None] - {first}[:-1])"
    text = f"{begun}[0] + {moved}.clamp(min=0).minimum({at}.diff()) @ ({given}.diff() / {at}.diff())"
    return Piece(text, array("float64", one.type.rank), False)


def _sized(call: Given, given: Piece, made: Piece, wish: str) -> tuple[str, str]:
    """The text of `made`, which `given` becomes, and of how many elements it has."""
    if all(each.isidentifier() for each in given.text.split(".")):
        return made.closed, f"{given.text}.numel()"
    text, again = named(call, made, wish)
    return text, f"{again}.numel()"


def folded(call: Given) -> Piece:
    """`np.convolve` and `np.correlate` of two rows, which change places where the second is longer."""
    one, other = call.array("a"), call.array("b")
    # NumPy takes nothing but rows: those that are not known are some.
    if not {one.type.rank, other.type.rank} <= {1, None}:
        raise Refused(f"`{one.text}` and `{other.text}` are not both rows")
    dtype = promoted(one.type.dtype, other.type.dtype)
    if dtype not in ("float32", "float64", "floats", "int64"):
        raise Refused("torch folds floats and ints of 64 bits alone")
    mode = call["mode"].type.value if "mode" in call.given else {"convolve": "full"}.get(call.name, "valid")
    if mode not in ("full", "same", "valid"):
        raise Refused("which part of what is folded is asked for is not written out")
    spreads = family(dtype) == "float" and mode != "valid"
    if spreads and not call.scope.is_of_sizes(call.nodes["b"]):
        # Around the first there are zeros, which make what is no number of what is none, or has no end.
        raise RefusedUnlike(
            f"where `{other.text}` holds NaN or infinity, torch finds it in more places than NumPy"
        )
    like = next(
        (each.text for each in (one, other) if each.text.isidentifier() and each.type.dtype == dtype), None
    )
    left, right = (cast(call.scope, each, dtype, like) for each in (one, other))
    first, size = _sized(call, one, left, "row")
    second, over = _sized(call, other, right, "kernel")
    turned = f"{second}.flip(0)" if call.name == "convolve" else second
    text = (
        f"{call.torch}.nn.functional.conv1d("
        f"{first}[None, None], {turned}[None, None], padding={over} - 1)[0, 0]"
    )
    if mode == "valid":
        text += f"[min({size}, {over}) - 1 : max({size}, {over})]"
    elif mode == "same" and call.name == "correlate":
        raise Refused("the middle of a correlation begins elsewhere where the second row is longer")
    elif mode == "same":
        text += f"[(min({size}, {over}) - 1) // 2 :][: max({size}, {over})]"
    return Piece(text, array(dtype, 1))


def counted(call: Given) -> Piece:
    """`np.histogram(a, bins=8, range=(0, 1))`: how many lie between borders, and the borders."""
    one = call.array("a")
    bins, ends = (
        call["bins"].type.value,
        [each.value for each in call["range"].type.items] if call.has("range") else [],
    )
    if not isinstance(bins, int) or isinstance(bins, bool) or bins < 1:
        raise Refused("how many bins are counted is not written out as a number")
    written = [float(each) for each in ends if isinstance(each, (int, float))]
    if len(ends) != 2 or len(written) != 2:
        raise Refused(
            "from where to where is counted is not written out: the smallest and the largest element decide it"
        )
    low, high = written
    if not low < high or not all(
        struct.unpack("f", struct.pack("f", each))[0] == each for each in (low, high)
    ):
        raise Refused("the borders are other numbers in single precision")
    if one.type.dtype not in ("float32", "float64", "floats", "int32", "int64"):
        raise Refused("torch counts floats and ints alone")
    of_floats = family(one.type.dtype) == "float"
    dtype = one.type.dtype if of_floats else "float64"
    borders = f"{call.torch}.linspace({low!r}, {high!r}, {bins + 1}, dtype={call.torch}.float64)"
    if dtype == "float32":
        borders += ".float()"
    elif dtype == "floats":
        borders += f".to({twice(one)}.dtype)"
    flat = one.closed if one.type.rank == 1 else f"{one.closed}.flatten()"
    flat = flat if dtype == "float64" and of_floats else f"{flat}.double()"
    # The last bin holds its right border as well: the next number is the first that it does not hold.
    behind = repr(math.nextafter(high, math.inf))
    last = f"{call.torch}.tensor([{behind}], dtype={call.torch}.float64)"
    inner = f"{borders}[:-1]" if dtype == "float64" else f"{borders}[:-1].double()"
    inner = f"{call.torch}.cat([{inner}, {last}])"
    count = f"{call.torch}.searchsorted({flat}.sort().values, {inner}).diff()"
    kind = Typed("tuple", items=(array("int64", 1), replace(array(dtype, 1), ascends=True)))
    return Piece(f"({count}, {borders})", kind)


def without_nan(call: Given) -> Piece:
    """`np.nanmin` and `np.nanmax`: the end of what is sorted, as NaN comes last there."""
    one = call.array("a")
    if family(one.type.dtype) not in ("float", "int"):
        raise Refused("torch sorts floats and ints alone")
    if call.has("axis") and call["axis"].type.what != "number":
        raise Refused("the least is found along one axis")
    kept = call.flag("keepdims") or "False"
    if kept not in ("True", "False") or (kept == "True" and not call.has("axis")):
        raise Refused("whether dimensions are kept is not written out")
    sign = "-" if call.name == "nanmax" else ""
    if family(one.type.dtype) == "int":
        more = dims_of(call)
        name = call.name.removeprefix("nan")
        text = f"{call.torch}.{f'a{name}' if more else name}({', '.join([one.text, *more])})"
        return Piece(text, array(one.type.dtype, left_of(call, one.type.rank)))
    axis = call.integer("axis") if call.has("axis") else "0"
    flat = one.closed if call.has("axis") or one.type.rank == 1 else f"{one.closed}.flatten()"
    end = f"select({axis}, 0)" if kept == "False" else f"narrow({axis}, 0, 1)"
    left = 0 if not call.has("axis") else None if one.type.rank is None else one.type.rank - 1
    text = f"{sign}{call.torch}.sort({sign}{flat}, dim={axis}).values.{end}"
    return Piece(text, array(one.type.dtype, one.type.rank if kept == "True" else left), not sign)


def spread(call: Given) -> Piece:
    """`np.nanvar` and `np.nanstd`: the mean of the squares of what is left when the mean is taken away."""
    one = call.array("a")
    if family(one.type.dtype) != "float" or one.type.dtype == "float16":
        raise Refused("torch leaves NaN out of floats alone")
    more = dims_of(call)
    kept = [*more[:1], "keepdim=True"] if more else []
    text, again = named(call, one, "rows")
    middle = f"{call.torch}.nanmean({', '.join([again, *kept])})"
    text = f"{call.torch}.nanmean({', '.join([f'({text} - {middle}) ** 2', *more])})"
    text = f"{text}.sqrt()" if call.name == "nanstd" else text
    return Piece(text, array(one.type.dtype, left_of(call, one.type.rank)))


def functions() -> dict[str, tuple[Handler, str, int]]:
    return {
        **dict.fromkeys(("nanmin", "nanmax"), (without_nan, "a axis unknown_out keepdims", 1)),
        **dict.fromkeys(
            ("nanstd", "nanvar"), (spread, "a axis unknown_dtype unknown_out unknown_ddof keepdims", 1)
        ),
        "cov": (varied, "a/m b/y rowvar bias ddof", 1),
        "corrcoef": (varied, "a/x b/y rowvar", 1),
        "interp": (between, "a/x xp fp", 3),
        "convolve": (folded, "a b/v mode", 2),
        "correlate": (folded, "a b/v mode", 2),
        "histogram": (counted, "a bins range", 1),
    }
