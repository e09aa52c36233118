"""Tensors: the facts (dtype, rank, storage) of results of arithmetic, indexing and comparison."""

from __future__ import annotations

from collections.abc import Iterable

from exportlens.inference import open_dims
from exportlens.inference.sizes import after_key, after_operator
from exportlens.inference.values import (
    Array,
    Choice,
    Const,
    Named,
    Sequence,
    Shape,
    Slice,
    Static,
    Tensor,
    TensorScalar,
    Value,
    from_data,
)

_ORDER = ("bool", "int", "float", "complex")


def dtype_family(dtype: str | None) -> str | None:
    """ "float" for "float32", "bfloat16" and so on; None where unknown."""
    if dtype is None:
        return None
    if dtype.startswith(("float", "bfloat", "half", "double")):
        return "float"
    if dtype.startswith(("int", "uint", "long", "short")):
        return "int"
    if dtype.startswith("complex"):
        return "complex"
    return dtype if dtype in _ORDER else None


def result_origin(*operands: Value) -> str:
    """A result is known while tracing only when all that it is made from is."""
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    data = [operand for operand in operands if isinstance(operand, (TensorScalar, Shape))]
    return (
        "constant"
        if tensors and not data and all(tensor.origin == "constant" for tensor in tensors)
        else "fresh"
    )


def broadcast(left: Value, right: Value, *, division: bool = False, matmul: bool = False) -> Value:
    """The result of elementwise arithmetic (or `@`) of which at least one operand is a tensor."""
    dtype = "float64" if _is_double(left, right, matmul) else _promote(left, right)
    if division and dtype in (None, "int", "bool"):
        dtype = "float"
    rank = _matmul_rank(left, right) if matmul else _broadcast_rank(left, right)
    tensors = [value for value in (left, right) if isinstance(value, Tensor)]
    if matmul:
        unbacked = any(tensor.unbacked for tensor in tensors)
        open_dim = None if unbacked else 0
        if unbacked and isinstance(left, Tensor) and isinstance(right, Tensor):
            unbacked, open_dim = open_dims.after_product(left, right, rank)
    else:
        unbacked, open_dim = broadcast_size(tensors, rank)
    gradient = any(tensor.requires_grad for tensor in tensors) and dtype_family(dtype) in (None, "float")
    made = Tensor(
        result_origin(left, right),
        dtype=dtype,
        rank=rank,
        unbacked=unbacked,
        open_dim=open_dim,
        requires_grad=gradient or None,
    )
    return after_operator(left, right, made, matmul=matmul)


def broadcast_size(tensors: list[Tensor], rank: int | None) -> tuple[bool, int | None]:
    """`unbacked` and `open_dim` of what an elementwise operator makes of `tensors`, a tensor with `rank` dimensions."""
    sized = [tensor for tensor in tensors if tensor.unbacked]
    rest = [tensor for tensor in tensors if not tensor.unbacked]
    if not sized:
        return False, None if any(tensor.open_dim is None for tensor in rest) else 0
    if any(_decides_size(other, opened) for other in rest for opened in sized):
        return False, 0
    return True, _one_dim([_aligned(tensor, rank) for tensor in sized])


def _decides_size(other: Tensor, opened: Tensor) -> bool:
    """Whether `other`, whose sizes no data decides, may have more than one element along the open dimension of `opened`:
    torch then takes the open size to be that one. Parameters and buffers are taken for what is broadcast."""
    if other.origin in ("parameter", "buffer", "constant") or other.open_dim is None:
        return False
    if other.rank is None or opened.rank is None or opened.open_dim is None:
        return other.rank is None or other.rank > 0
    return other.rank >= opened.rank - opened.open_dim


def _aligned(opened: Tensor, rank: int | None) -> int | None:
    """The open dimension where others before the first were added."""
    if opened.open_dim is None or rank is None or opened.rank is None:
        return opened.open_dim
    return opened.open_dim + rank - opened.rank


def _one_dim(dims: list[int | None]) -> int | None:
    """The dimension that several tensors agree to be open; the first where none is."""
    return dims[0] if len(set(dims)) == 1 else None if dims else 0


def _is_double(left: Value, right: Value, matmul: bool) -> bool:
    """Whether arithmetic gives float64: of nothing else and of real numbers, or of a tensor of it with dimensions and anything real."""
    tensors = [value for value in (left, right) if isinstance(value, Tensor)]
    doubles = [tensor for tensor in tensors if tensor.dtype == "float64"]
    if not doubles or _promote(left, right) not in ("float", "float64"):
        return False
    if len(doubles) < len(tensors):
        return not matmul and all(map(_is_real, tensors)) and any(tensor.rank for tensor in doubles)
    return all(isinstance(value, Tensor) or _is_real(value) for value in (left, right))


def _is_real(value: Value) -> bool:
    """Whether an operand is known to be a real number, or a tensor of such."""
    if isinstance(value, Tensor):
        return dtype_family(value.dtype) in ("bool", "int", "float")
    if isinstance(value, Const):
        return isinstance(value.value, (bool, int, float))
    return getattr(value, "type", None) in ("bool", "int", "float") or isinstance(value, Shape)


def _promote(left: Value, right: Value) -> str | None:
    families = []
    for value in (left, right):
        if isinstance(value, Tensor):
            families.append(dtype_family(value.dtype))
        elif isinstance(value, Const):
            families.append(
                type(value.value).__name__ if isinstance(value.value, (bool, int, float, complex)) else None
            )
        else:
            families.append(getattr(value, "type", None) or None)
    if None in families or any(family not in _ORDER for family in families):
        # Beside floats all others become floats, too; that one of no known dtype is complex nobody expects.
        return "float" if "float" in families and "complex" not in families else None
    return max((family for family in families if family), key=_ORDER.index)


def _broadcast_rank(left: Value, right: Value) -> int | None:
    ranks = [value.rank if isinstance(value, Tensor) else 0 for value in (left, right)]
    if None in ranks:
        return None
    return max(rank for rank in ranks if rank is not None)


def _matmul_rank(left: Value, right: Value) -> int | None:
    if (
        not (isinstance(left, Tensor) and isinstance(right, Tensor))
        or left.rank is None
        or right.rank is None
    ):
        return None
    if left.rank >= 2 and right.rank >= 2:
        return max(left.rank, right.rank)
    return max(left.rank + right.rank - 2, 0)


def comparison(left: Value, right: Value) -> Tensor:
    """The boolean tensor of an elementwise comparison."""
    result = broadcast(left, right)
    assert isinstance(result, Tensor)
    return Tensor(
        result.origin,
        dtype="bool",
        rank=result.rank,
        unbacked=result.unbacked,
        open_dim=result.open_dim,
        dims=result.dims,
    )


def text_of(values: Iterable[Value]) -> Static:
    """A text that is made of the values."""
    for value in values:
        if isinstance(value, Static) and value.spells:
            return value
        if from_data(value):
            return Static("str", spells=getattr(value, "origin", "") or "a tensor")
    return Static("str")


def is_plain_number(value: Value) -> bool:
    """Whether `value` is one number of Python's, or a float that NumPy made of such numbers while tracing."""
    if isinstance(value, Array):
        return value.rank == 0 and value.dtype == "float64" and not (value.traced or value.held)
    if isinstance(value, Const):
        return isinstance(value.value, (int, float))
    return isinstance(value, Shape) or (isinstance(value, Static) and value.type in ("int", "float", ""))


def fresh_array(*operands: Value) -> Array:
    """The result of NumPy arithmetic: from tensor data when an operand is."""
    if all(is_plain_number(value) for value in operands):
        return Array(False, "float64", 0)
    rank = _rank_of_all(operands)
    double = rank == 0 and all(
        value.dtype == "float64" if isinstance(value, Array) else is_plain_number(value) for value in operands
    )
    return Array(
        any(
            isinstance(value, (Array, Tensor))
            and (from_data(value) if isinstance(value, Tensor) else value.traced)
            for value in operands
        ),
        "float64" if double else None,
        rank,
        held=any(isinstance(value, Array) and value.held for value in operands),
    )


def index_tensor(tensor: Tensor, key: Value) -> Value:
    """`tensor[key]`."""
    parts: list[Value] = [key]
    rank = tensor.rank
    if isinstance(key, Sequence) and key.kind == "tuple" and key.items is not None:
        parts = key.items
    elif isinstance(key, Sequence) and key.kind == "tuple" and isinstance(key.element, Tensor):
        # As `torch.where(mask)` gives them: one index for each of a number of dimensions that is not known.
        parts = [key.element]
        rank = None
    unbacked = tensor.unbacked
    view = True
    origin = tensor.origin if tensor.origin == "constant" else "fresh"
    first_index: int | None = None
    opened: int | None = None  # the dimension whose size the key itself leaves to data
    kept = 0  # dimensions of the result that the parts so far leave
    for part in parts:
        if isinstance(part, Choice):
            part = part.options[0]
        if isinstance(part, Tensor):
            view = False
            if origin == "constant" and part.origin != "constant":
                origin = "fresh"
            if part.dtype == "bool" and part.origin != "constant":
                opened = kept
                unbacked = True
            if part.dtype == "bool":
                rank = (
                    None
                    if rank is None or part.rank is None
                    else rank - part.rank + (1 if first_index is None else 0)
                )
                first_index = 1
            elif part.dtype is None or part.rank is None:
                # A mask or indices? Not known: claim nothing of the shape.
                rank = None
            else:
                rank = None if rank is None else rank - 1 + (part.rank if first_index is None else 0)
                first_index = part.rank
            if part.unbacked:
                opened = kept
                unbacked = True
        elif isinstance(part, Const) and part.value is None:
            rank = None if rank is None else rank + 1
        elif isinstance(part, Const) and isinstance(part.value, int) and not isinstance(part.value, bool):
            rank = None if rank is None else rank - 1
        elif isinstance(part, (Slice, Const)):
            kept += 1
            if isinstance(part, Slice) and any(
                bound is not None
                and (
                    isinstance(bound, TensorScalar)
                    or (isinstance(bound, Shape) and bound.unbacked)
                    or (isinstance(bound, Tensor) and bound.origin != "constant")
                )
                for bound in (part.lower, part.upper)
            ):
                opened = kept - 1
                unbacked = True
        elif isinstance(part, (Shape, TensorScalar)) or (isinstance(part, Static) and part.type == "int"):
            rank = None if rank is None else rank - 1
        elif isinstance(part, Sequence):
            view = False
            rank = rank if len(parts) == 1 else None
        else:
            rank = None
    if rank is not None and rank < 0:
        rank = None
    if opened is None and tensor.open_dim is not None and open_dims.is_picked(parts, tensor.open_dim):
        unbacked = False
    # Where the key picks from the open dimension, whether a size is still open is not followed.
    stays = None if tensor.open_dim is None else open_dims.after_key(parts, tensor.open_dim)
    open_dim = opened if opened is not None else stays if unbacked else 0
    made = Tensor(
        origin,
        tensor.name if view else "",
        tensor.dtype,
        rank,
        unbacked,
        tensor.root if view else 0,
        requires_grad=tensor.requires_grad,
        open_dim=open_dim,
        converted=view and tensor.converted,
        recast=tensor.recast,
    )
    return after_key(tensor, parts, made)


def size_of(tensor: Tensor, dim: Value | None = None) -> Value:
    """One size of `tensor`."""
    known = dim.value if isinstance(dim, Const) and isinstance(dim.value, int) else None
    if tensor.dims is not None and known is not None and -len(tensor.dims) <= known < len(tensor.dims):
        return tensor.dims[known]
    source = tensor.name if tensor.origin == "input" else None
    origin = tensor.name or "a tensor"
    if tensor.unbacked:
        # Which of its dimensions depends on data is known only for one-dimensional results.
        certain = tensor.rank == 1 or (known is not None and known == tensor.open_dim)
        return Shape(certain, None, known, origin)
    return Shape(False, source, known, origin, whole=True)


def shape_of(tensor: Tensor) -> Sequence:
    """`tensor.shape`: a tuple of sizes, its length known when the rank is."""
    if tensor.rank is None:
        source = tensor.name if tensor.origin == "input" else None
        element = Shape(False, source, None, tensor.name, whole=not tensor.unbacked)
        first = size_of(tensor, Const(0)) if tensor.unbacked else None
        return Sequence("tuple", None, element, "torch.Size", first=first)
    return Sequence("tuple", [size_of(tensor, Const(dim)) for dim in range(tensor.rank)], None, "torch.Size")


def dtype_of_named(value: Value | None) -> str | None:
    """ "float32" for the value `torch.float32`, also for `float` and `bool`."""
    if isinstance(value, Named):
        name = value.name.rpartition(".")[2]
        if value.name.startswith("torch."):
            return {
                "float": "float32",
                "double": "float64",
                "half": "float16",
                "long": "int64",
                "short": "int16",
            }.get(name, name)
        if value.name.startswith("builtins."):
            return {"float": "float32", "int": "int64", "bool": "bool"}.get(name)
    if isinstance(value, Static) and value.of != "any":
        return value.of or None
    return None


def _rank_of_all(operands: tuple[Value, ...]) -> int | None:
    """The number of dimensions of what NumPy computes of `operands`; None where that of one is not known."""
    ranks = [
        value.rank if isinstance(value, Array) else 0 if is_plain_number(value) else None
        for value in operands
    ]
    known = [rank for rank in ranks if rank is not None]
    return max(known) if len(known) == len(ranks) else None
