"""What dtype and rank a call's result has: the rules named in the data, evaluated for one bound call.

A bound call is what `Op.bind` gives: parameter name to `TensorFacts`, Python constant, `Constant` (a
dtype), tuple or list of these, or UNKNOWN. Every rule answers None where the call does not tell. The
generator accepts a rule for an operator only when these very functions predict every sampled result of real
torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from exportlens.inference.knowledge.model import UNKNOWN, Constant, TensorFacts

Bound = Mapping[str, object]

_INTEGRAL = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
_FLOATING = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
_REAL = {value: key for key, value in _COMPLEX.items()}
_SIGNED_ORDER = ("int8", "int16", "int32", "int64")
DEFAULT_FLOAT = "float32"


def tensors_of(bound: Bound) -> list[TensorFacts]:
    """The tensors among the arguments, in order, those in lists included."""
    return list(_tensors(bound.values()))


def _tensors(values: object) -> Iterator[TensorFacts]:
    for value in values:  # type: ignore[attr-defined]
        if isinstance(value, TensorFacts):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)


def _hides_tensor(bound: Bound) -> bool:
    return any(
        value is UNKNOWN or (isinstance(value, (tuple, list)) and UNKNOWN in value)
        for value in bound.values()
    )


def family(dtype: str) -> str:
    """ "bool", "int", "float" or "complex"."""
    if dtype == "bool":
        return "bool"
    if dtype in _FLOATING or dtype.startswith("float"):
        return "float"
    return "complex" if dtype.startswith("complex") else "int"


# --- dtype
# ------------------------------------------------------------------------------------------------------


def dtype_after(rule: str | None, bound: Bound) -> str | None:
    """The dtype name of the result, e.g. "float32". A given `dtype=` decides before any rule."""
    given = bound.get("dtype")
    if isinstance(given, Constant) and given.kind == "dtype":
        return str(given.value)
    if given is not None or rule is None:
        return None
    if rule.startswith("="):
        return rule[1:]
    return DTYPE_RULES[rule](bound)


def _same(bound: Bound) -> str | None:
    first = next(iter(bound.values()), None)
    tensors = tensors_of(bound)
    return tensors[0].dtype if tensors and first is not UNKNOWN else None


def _second_dtype(bound: Bound) -> str | None:
    tensors = tensors_of(bound)
    return tensors[1].dtype if len(tensors) > 1 and not _hides_tensor(bound) else None


def _to_float(dtype: str | None) -> str | None:
    if dtype is None:
        return None
    return DEFAULT_FLOAT if dtype in _INTEGRAL else dtype


def _float(bound: Bound) -> str | None:
    return _to_float(_same(bound))


def _real(bound: Bound) -> str | None:
    dtype = _same(bound)
    return _REAL.get(dtype, dtype) if dtype else None


def _float_real(bound: Bound) -> str | None:
    dtype = _float(bound)
    return _REAL.get(dtype, dtype) if dtype else None


def _complex(bound: Bound) -> str | None:
    dtype = _float(bound)
    return _COMPLEX.get(dtype, dtype) if dtype else None


def _accumulate(bound: Bound) -> str | None:
    dtype = _same(bound)
    return "int64" if dtype in _INTEGRAL else dtype


def _promote(bound: Bound) -> str | None:
    if _hides_tensor(bound):
        return None
    return promote(_operands(bound))


def _promote_float(bound: Bound) -> str | None:
    return _to_float(_promote(bound))


def _operands(bound: Bound) -> list[object]:
    operands: list[object] = []
    for name, value in bound.items():
        if isinstance(value, TensorFacts) or (
            name in ("other", "input", "self", "exponent", "min", "max", "value", "end", "start")
            and isinstance(value, (int, float, complex))
        ):
            operands.append(value)
        elif isinstance(value, (tuple, list)):
            operands.extend(item for item in value if isinstance(item, TensorFacts))
    return operands


def promote(operands: list[object]) -> str | None:
    """torch's type promotion of tensors and Python numbers, None where an operand's dtype or rank is not
    known.

    Source: the "Type promotion" section of torch's tensor attributes page; dimensioned tensors go before
    zero-dimensional ones, these before numbers, unless the later one is of a higher family.
    """
    groups: tuple[list[str], list[str], list[str]] = ([], [], [])
    for operand in operands:
        if isinstance(operand, TensorFacts):
            if operand.dtype is None:
                return None
            if operand.rank is None and len(operands) > 1:
                return _agreed(operands)
            groups[1 if operand.rank == 0 else 0].append(operand.dtype)
        elif isinstance(operand, bool):
            groups[2].append("bool")
        elif isinstance(operand, int):
            groups[2].append("int64")
        elif isinstance(operand, float):
            groups[2].append(DEFAULT_FLOAT)
        elif isinstance(operand, complex):
            groups[2].append("complex64")
    result: str | None = None
    order = ("bool", "int", "float", "complex")
    for group in groups:
        if not group:
            continue
        joined: str | None = group[0]
        for dtype in group[1:]:
            joined = _join(joined, dtype)
        if joined is None:
            return None
        if result is None:
            result = joined
        elif order.index(family(joined)) > order.index(family(result)):
            if family(joined) == "complex" and family(result) == "float":
                result = _COMPLEX.get(result)
                if result is None:
                    return None
            else:
                result = joined
    return result


def _agreed(operands: list[object]) -> str | None:
    dtypes = {operand.dtype for operand in operands if isinstance(operand, TensorFacts)}
    if len(dtypes) != 1:
        return None
    dtype = dtypes.pop()
    numbers = [operand for operand in operands if not isinstance(operand, TensorFacts)]
    if dtype is None:
        return None
    order = ("bool", "int", "float", "complex")
    highest = max((_number_family(number) for number in numbers), key=order.index, default="bool")
    return dtype if order.index(highest) <= order.index(family(dtype)) else None


def _number_family(number: object) -> str:
    if isinstance(number, bool):
        return "bool"
    return "int" if isinstance(number, int) else "float" if isinstance(number, float) else "complex"


def _join(left: str | None, right: str) -> str | None:
    if left == right or left is None:
        return left
    families = {family(left): left, family(right): right}
    if len(families) == 2:
        order = ("bool", "int", "float", "complex")
        low, high = sorted(families, key=order.index)
        if high == "complex" and low == "float":
            wide = {families[low], _REAL.get(families[high], "")}
            return "complex128" if "float64" in wide else "complex64" if "float32" in wide else None
        return families[high]
    if {left, right} <= set(_SIGNED_ORDER):
        return max(left, right, key=_SIGNED_ORDER.index)
    if {left, right} == {"float16", "bfloat16"}:
        return "float32"
    if "uint8" in (left, right):
        other = right if left == "uint8" else left
        return {"int8": "int16"}.get(other, other) if other in _SIGNED_ORDER else None
    wide_order = ("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128")
    if left in wide_order and right in wide_order:
        return max(left, right, key=wide_order.index)
    return None


def _numbers(bound: Bound) -> str | None:
    """What Python numbers become: bool, int64, float32 or complex64, by the highest among them (arange,
    full, tensor).
    """
    numbers: list[object] = []
    pending: list[object] = [
        bound[name] for name in ("start", "end", "step", "fill_value", "data", "obj") if name in bound
    ]
    while pending:
        value = pending.pop()
        if isinstance(value, (tuple, list)):
            pending.extend(value)
        elif isinstance(value, (int, float, complex)):
            numbers.append(value)
        else:
            return None
    return promote(numbers) if numbers else None


DTYPE_RULES: dict[str, Callable[[Bound], str | None]] = {
    "same": _same,
    "promote": _promote,
    "float": _float,
    "promote-float": _promote_float,
    "accumulate": _accumulate,
    "real": _real,
    "float-real": _float_real,
    "complex": _complex,
    "second": _second_dtype,
    "numbers": _numbers,
}


# --- rank
# -------------------------------------------------------------------------------------------------------


def rank_after(rule: str | None, bound: Bound) -> int | None:
    """The number of dimensions of the result, None where the call does not tell."""
    if rule is None:
        return None
    if rule.startswith("="):
        return int(rule[1:])
    if rule.startswith("first"):
        first = _first_rank(bound)
        return None if first is None else first + int(rule[5:] or 0)
    return RANK_RULES[rule](bound)


def _first_rank(bound: Bound) -> int | None:
    tensors = tensors_of(bound)
    return tensors[0].rank if tensors and next(iter(bound.values())) is not UNKNOWN else None


def _broadcast(bound: Bound) -> int | None:
    if _hides_tensor(bound):
        return None
    ranks = [tensor.rank for tensor in tensors_of(bound)]
    known = [rank for rank in ranks if rank is not None]
    return max(known) if known and len(known) == len(ranks) else None


def _reduce(bound: Bound) -> int | None:
    keepdim = bound.get("keepdim", False)
    dim = bound.get("dim")
    if keepdim is UNKNOWN or dim is UNKNOWN:
        return None
    everything = dim is None or dim == () or dim == []
    if everything and not keepdim:
        return 0
    rank = _first_rank(bound)
    if rank is None or keepdim:
        return rank
    removed = len(dim) if isinstance(dim, (tuple, list)) else 1
    return max(rank - removed, 0)


def _reduce_dim(bound: Bound) -> int | None:
    """As "reduce", but a missing dim means one dimension (the last), not all."""
    rank = _first_rank(bound)
    keepdim = bound.get("keepdim", False)
    if rank is None or keepdim is UNKNOWN:
        return None
    return rank if keepdim else max(rank - 1, 0)


def _reduce_broadcast(bound: Bound) -> int | None:
    """One dimension less than what the inputs are broadcast to."""
    rank = _broadcast(bound)
    return None if rank is None else max(rank - 1, 0)


def _size(bound: Bound) -> int | None:
    for name in ("size", "shape", "sizes", "dims", "repeats"):
        value = bound.get(name)
        if isinstance(value, (tuple, list)):
            return len(value)
        if isinstance(value, int):
            return 1
    return None


def _tile(bound: Bound) -> int | None:
    rank, size = _first_rank(bound), _size(bound)
    return None if rank is None or size is None else max(rank, size)


def _matmul(bound: Bound) -> int | None:
    tensors = tensors_of(bound)
    if len(tensors) < 2:
        return None
    left, right = tensors[0].rank, tensors[1].rank
    if left is None or right is None:
        return None
    if left == 1 and right == 1:
        return 0
    if left == 1 or right == 1:
        return max(left, right) - 1
    return max(left, right)


def _flatten(bound: Bound) -> int | None:
    rank = _first_rank(bound)
    start, end = bound.get("start_dim", 0), bound.get("end_dim", -1)
    if rank is None or not isinstance(start, int) or not isinstance(end, int):
        return None
    start, end = start + rank * (start < 0), end + rank * (end < 0)
    return max(rank - max(end - start, 0), 1)


def _unflatten(bound: Bound) -> int | None:
    rank, sizes = _first_rank(bound), bound.get("sizes")
    return rank - 1 + len(sizes) if rank is not None and isinstance(sizes, (tuple, list)) else None


def _one_dim(bound: Bound) -> int | None:
    """One dimension without `dim`, the input's with it (cumulative, repeat_interleave, take_along_dim)."""
    dim = bound.get("dim")
    if dim is UNKNOWN:
        return None
    return 1 if dim is None else _first_rank(bound)


def _loss(bound: Bound) -> int | None:
    """What `reduction` leaves of a loss: 0 dimensions, or those of the input."""
    reduction = bound.get("reduction", "mean")
    if reduction in ("mean", "sum", 1, 2):
        return 0
    return _broadcast(bound) if reduction in ("none", 0) else None


def _second(bound: Bound) -> int | None:
    tensors = tensors_of(bound)
    return tensors[1].rank if len(tensors) > 1 and not _hides_tensor(bound) else None


def _second_more(bound: Bound) -> int | None:
    """An embedding: the indices' dimensions and one more."""
    for name in ("indices", "input"):
        value = bound.get(name)
        if isinstance(value, TensorFacts):
            return None if value.rank is None else value.rank + 1
    return None


def _nesting(bound: Bound) -> int | None:
    """How deep the lists of `torch.tensor(data)` are nested."""
    depth, value = 0, bound.get("data", bound.get("obj", UNKNOWN))
    while isinstance(value, (tuple, list)):
        depth += 1
        if not value:
            return depth
        value = value[0]
    if isinstance(value, TensorFacts):
        return None if value.rank is None else depth + value.rank
    return depth if isinstance(value, (int, float, complex)) else None


def _at_least(least: int) -> Callable[[Bound], int | None]:
    def rule(bound: Bound) -> int | None:
        rank = _first_rank(bound)
        return None if rank is None else max(rank, least)

    return rule


def _diagonal(bound: Bound) -> int | None:
    """The diagonal of a matrix, or the matrix of one."""
    rank = _first_rank(bound)
    return 3 - rank if rank in (1, 2) else None


RANK_RULES: dict[str, Callable[[Bound], int | None]] = {
    "broadcast": _broadcast,
    "reduce": _reduce,
    "reduce-dim": _reduce_dim,
    "reduce-broadcast": _reduce_broadcast,
    "size": _size,
    "tile": _tile,
    "matmul": _matmul,
    "flatten": _flatten,
    "unflatten": _unflatten,
    "one-dim": _one_dim,
    "loss": _loss,
    "second": _second,
    "embedding": _second_more,
    "nesting": _nesting,
    "diagonal": _diagonal,
    "at-least-1": _at_least(1),
    "at-least-2": _at_least(2),
    "at-least-3": _at_least(3),
}
