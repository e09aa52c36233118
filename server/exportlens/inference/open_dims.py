"""Which dimension of a tensor has a size that tensor data decides, after operators that move dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from exportlens.inference.values import Const, Shape, Slice, Static, Tensor, Value
from exportlens.inference.values import Sequence as ListOf

Bound = Mapping[str, Value | tuple[Value, ...]]


def after(name: str, source: Tensor, bound: Bound) -> int | None:
    """The open dimension of what the operator `name` makes of `source`; None where it is not known."""
    at = source.open_dim
    if at is None:
        return None
    if name in REDUCING:
        return _after_reduction(source, at, bound)
    if name in ("unsqueeze", "stack"):
        if source.rank == 0:
            # It asks if one alone was found, which tracing takes for granted it was not.
            return 0
        dim = _number(bound.get("dim", Const(0)))
        if dim is None or (dim < 0 and source.rank is None):
            return None
        dim = dim if dim >= 0 else dim + (source.rank or 0) + 1
        return at + 1 if dim <= at else at
    if name == "squeeze":
        if "dim" not in bound:
            # Tracing takes for granted that a size from data is not 1. What is behind goes or stays; before it one of one element goes.
            return 0 if at == 0 or (source.rank == 2 and source.single == 0) else None
        squeezed = _dim(bound.get("dim"), source)
        if squeezed is not None and squeezed < at and squeezed == source.single:
            return at - 1
        # A dimension behind it goes or stays, and does not move it.
        return at if squeezed is not None and squeezed > at else None
    if name in ("transpose", "swapaxes", "swapdims"):
        pair = [_dim(bound.get(key), source) for key in _pair_names(bound)]
        if len(pair) != 2 or None in pair:
            return None
        return pair[1 - pair.index(at)] if at in pair else at
    if name in ("t", "numpy_T", "T") and source.rank is not None:
        return source.rank - 1 - at
    if name == "permute":
        dims = _several(bound.get("dims"))
        order = [_dim(dim, source) for dim in dims]
        return order.index(at) if at in order and None not in order else None
    if name in ("view", "reshape"):
        return _the_open_size(_several(bound.get("size", bound.get("shape"))))
    if name == "flatten":
        return _after_flatten(source, at, bound)
    if name == "repeat":
        # Repeated or not, the open dimension stays open; new ones come before it.
        times = _several(bound.get("repeats"))
        return None if source.rank is None or not times else at + len(times) - source.rank
    return None


# What these are told a `dim` of is one dimension, or several, fewer in the result.
REDUCING = frozenset(
    {
        "sum", "nansum", "mean", "nanmean", "prod", "max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "std", "var", "std_mean",
        "var_mean", "norm", "logsumexp", "all", "any", "median", "nanmedian", "mode", "quantile", "nanquantile", "count_nonzero", "select",
    }
)  # fmt: skip


def closes(source: Tensor, bound: Bound, rank: int | None) -> bool:
    """Whether a reduction to `rank` dimensions takes the open dimension of `source` away, or may and leaves one at most."""
    if source.open_dim is None or "dim" not in bound:
        return rank == 1
    reduced = _reduced(source, bound)
    return rank == 1 if None in reduced else source.open_dim in reduced


def closes_by_count(source: Tensor, bound: Bound) -> bool | None:
    """Whether `torch.topk` takes a number that is known of the open dimension of `source`: it has that size from there on. None
    where it is not known which dimension is meant."""
    if source.open_dim is None or not isinstance(bound.get("k"), (Const, Static)):
        return False
    given = bound.get("dim")
    dim = _dim(Const(-1) if given is None else given, source)
    return None if dim is None else dim == source.open_dim


def _after_reduction(source: Tensor, at: int, bound: Bound) -> int | None:
    reduced = _reduced(source, bound)
    if None in reduced or at in reduced:
        return None
    kept = bound.get("keepdim")
    if isinstance(kept, Const) and kept.value:
        return at
    return at - sum(dim is not None and dim < at for dim in reduced) if kept is None else None


def _reduced(source: Tensor, bound: Bound) -> list[int | None]:
    return [_dim(dim, source) for dim in _several(bound.get("dim"))] or [None]


def after_product(left: Tensor, right: Tensor, rank: int | None) -> tuple[bool, int | None]:
    """`unbacked` and `open_dim` of the matrix product of two tensors, one of them with an open dimension, which has `rank`."""
    stay = [_after_product(left, right.rank, rank, 1), _after_product(right, left.rank, rank, 2)]
    known = [at for at in stay if at is not None]
    if len(known) < len(stay) or rank is None:
        return rank != 0, None
    # What it sums over is gone, on both sides.
    open_ones = [at for at in known if at >= 0]
    return bool(open_ones), min(open_ones, default=0)


def _after_product(source: Tensor, other: int | None, rank: int | None, summed: int) -> int | None:
    """Where the open dimension of one operand is in a product of `rank` dimensions; -1 where it is summed over, or none is open, and
    None where that is not known. `summed`: which dimension from behind a matrix on this side is summed over."""
    if not source.unbacked:
        return -1
    if source.open_dim is None or source.rank is None or other is None or rank is None:
        return None
    behind = source.rank - source.open_dim
    if behind == (summed if source.rank > 1 else 1):
        return -1
    # Of a vector on the other side no dimension is left.
    if behind > 2:
        return rank - behind + (other == 1)
    return rank - 1 if other == 1 or summed == 2 else rank - 2


def after_key(parts: Sequence[Value], open_dim: int) -> int | None:
    """Where the open dimension is after `tensor[parts]`, whose parts are slices, None and numbers only. What is cut from it is as
    long as data lets it be: torch takes the lesser of two sizes, `Min(3, u0)`, and cannot compare it either."""
    before = made = 0
    for part in parts:
        if isinstance(part, Const) and part.value is None:
            made += 1
        elif isinstance(part, Const) and isinstance(part.value, int) and not isinstance(part.value, bool):
            if before == open_dim:
                return None
            before += 1
        elif isinstance(part, Slice) and (before == open_dim or _is_whole(part)):
            if before == open_dim:
                return made
            before += 1
            made += 1
        else:
            return None
    return made + open_dim - before


def is_picked(parts: Sequence[Value], open_dim: int) -> bool:
    """Whether `tensor[parts]` is one element along the open dimension, so that its size is none of the result's."""
    before = 0
    for part in parts:
        if isinstance(part, Const) and part.value is None:
            continue
        number = isinstance(part, Const) and isinstance(part.value, int) and not isinstance(part.value, bool)
        if before == open_dim:
            return number
        if not number and not _is_whole(part):
            return False
        before += 1
    return False


def _is_whole(part: Value) -> bool:
    return isinstance(part, Slice) and part.lower is part.upper is part.step is None


def _after_flatten(source: Tensor, at: int, bound: Bound) -> int | None:
    start = _dim(bound.get("start_dim", Const(0)), source)
    end = bound.get("end_dim", Const(-1))
    if start is None:
        return None
    if at <= start:
        return at
    last = _number(end)
    if last is None or (last < 0 and last != -1 and source.rank is None):
        return None
    stop = source.rank if last == -1 else last + 1 if last >= 0 else last + 1 + (source.rank or 0)
    if stop is None or at < stop:
        return start
    return at - (stop - start - 1)


def _the_open_size(sizes: Sequence[Value]) -> int | None:
    """Where a size that data decides, or else -1, stands in what a view is given, if there is one such place."""
    if not all(isinstance(size, (Const, Static, Shape)) for size in sizes):
        return None
    places = [at for at, size in enumerate(sizes) if isinstance(size, Shape) and size.unbacked]
    rest = [at for at, size in enumerate(sizes) if isinstance(size, Const) and size.value == -1]
    found = places or rest
    return found[0] if len(found) == 1 else None


def _pair_names(bound: Bound) -> tuple[str, ...]:
    return next(
        (
            names
            for names in (("dim0", "dim1"), ("axis0", "axis1"))
            if names[0] in bound and names[1] in bound
        ),
        (),
    )


def _several(given: Value | tuple[Value, ...] | None) -> list[Value]:
    values = list(given) if isinstance(given, tuple) else [given] if given is not None else []
    if len(values) == 1 and isinstance(values[0], ListOf):
        return list(values[0].items or ())
    return values


def _dim(given: Value | tuple[Value, ...] | None, source: Tensor) -> int | None:
    dim = _number(given)
    if dim is None or dim >= 0:
        return dim
    return None if source.rank is None else dim + source.rank


def _number(given: Value | tuple[Value, ...] | None) -> int | None:
    value = given.value if isinstance(given, Const) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def how_many(given: Value | tuple[Value, ...] | None) -> int | None:
    """How many numbers an argument lists, one by one or in one sequence; None where that is not known."""
    values = _several(given)
    certain = all(isinstance(each, (Const, Static, Shape)) for each in values)
    return len(values) if values and certain else None
