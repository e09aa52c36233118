"""What NumPy's functions of two numbers do along an axis and for all pairs: `np.maximum.accumulate(a)`, `np.subtract.outer(a, b)`."""

from __future__ import annotations

from exportlens.rewriting.arrays.array_operators import compared, computed
from exportlens.rewriting.arrays.array_pieces import Given, Handler, Piece
from exportlens.rewriting.arrays.array_types import RefusedUnlike, array, family
from exportlens.rewriting.code.draft import Refused

_RUNNING = {"maximum": "cummax", "minimum": "cummin", "add": "cumsum", "multiply": "cumprod"}
_FOLDED = {
    "maximum": "amax",
    "minimum": "amin",
    "add": "sum",
    "multiply": "prod",
    "logical_and": "all",
    "logical_or": "any",
}
_PAIRS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/"}
_COMPARED = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


def running(call: Given) -> Piece:
    """`np.maximum.accumulate` along an axis, the first where none is given."""
    one = call.array("a")
    name = call.name.partition(".")[0]
    dtype = one.type.dtype
    if name in ("add", "multiply"):
        if dtype.startswith("uint"):
            raise RefusedUnlike("NumPy adds up bytes to numbers without a sign")
        if dtype == "float16":
            raise RefusedUnlike("NumPy rounds each sum of halves to one")
        dtype = "int64" if family(dtype) in ("int", "bool") else dtype
    elif family(dtype) == "complex":
        raise Refused("complex numbers have no order in torch")
    dim = call.integer("axis") if "axis" in call.given else "0"
    values = ".values" if name in ("maximum", "minimum") else ""
    text = f"{call.torch}.{_RUNNING[name]}({one.text}, dim={dim}){values}"
    return Piece(text, array(dtype, one.type.rank))


def folded(call: Given) -> Piece:
    """`np.maximum.reduce` along an axis, the first where none is given."""
    one = call.array("a")
    name = call.name.partition(".")[0]
    dtype = one.type.dtype
    if name in ("add", "multiply"):
        if dtype.startswith("uint"):
            raise RefusedUnlike("NumPy adds up bytes to numbers without a sign")
        dtype = "int64" if family(dtype) in ("int", "bool") else dtype
    elif name.startswith("logical"):
        if dtype != "bool":
            raise Refused("whether numbers are true is not asked of an array of bools")
    elif family(dtype) == "complex":
        raise Refused("complex numbers have no order in torch")
    dim = call.integer("axis") if "axis" in call.given else "0"
    rank = None if one.type.rank is None else one.type.rank - 1
    return Piece(f"{call.torch}.{_FOLDED[name]}({one.text}, dim={dim})", array(dtype, rank))


def pairs(call: Given) -> Piece:
    """`np.subtract.outer` of two rows as the operator on a column and a row."""
    one, other = call.array("a"), call.array("b")
    if (one.type.rank, other.type.rank) != (1, 1):
        raise Refused(f"whether `{one.text}` and `{other.text}` are rows is not known")
    name = call.name.partition(".")[0]
    if name in _COMPARED:
        sign = _COMPARED[name]
        left, right, kind = compared(call.scope, one, other)
    else:
        sign = _PAIRS[name]
        left, right, kind = computed(call.scope, one, other, sign)
    return Piece(f"{left.closed}[:, None] {sign} {right.closed}", array(kind.dtype, 2), False)


def functions() -> dict[str, tuple[Handler, str, int]]:
    return {
        **{f"{name}.accumulate": (running, "a axis", 1) for name in _RUNNING},
        **{f"{name}.reduce": (folded, "a axis", 1) for name in _FOLDED},
        **{f"{name}.outer": (pairs, "a b", 2) for name in (*_PAIRS, *_COMPARED)},
    }
