"""What a call of an operator gives: its dtype, its rank, and where data decides about its size, by torch's own schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from exportlens.inference import knowledge, open_dims
from exportlens.inference.lattice import element_of
from exportlens.inference.machine import Machine
from exportlens.inference.tensors import broadcast_size, dtype_family, dtype_of_named
from exportlens.inference.values import (
    Const,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    options,
)

# After these the dimension whose size depends on data may be another one.
_MOVING = frozenset(
    {
        "stack", "hstack", "vstack", "dstack", "column_stack", "t", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis",
        "view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "unfold", "expand", "repeat", "tile", "matmul", "mm", "bmm",
        "einsum", "outer", "tensordot", "gather", "cdist", "meshgrid", "one_hot", "sum", "mean", "max", "min", "amax", "amin", "rot90",
        "adjoint", "expand_as", "view_as", "reshape_as", "take", "take_along_dim", "select", "index_select", "broadcast_to", "diag",
    }
)  # fmt: skip

# What makes a tensor in the very size that it is given.
MADE_IN_A_SIZE = frozenset(
    {
        "zeros", "ones", "empty", "full", "rand", "randn", "randint", "new_zeros", "new_ones", "new_empty", "new_full", "arange", "randperm",
    }
)  # fmt: skip

_WITHOUT_GRADIENTS = frozenset(
    {"detach", "sign", "floor", "ceil", "round", "trunc"}
    | {f"{name}_like" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint")}
    | {f"new_{name}" for name in ("zeros", "ones", "empty", "full", "tensor")}
)

# The operator gives a list, the function of Python that calls it a tuple.
_GIVING_TUPLES = ("split", "where", "nonzero")

_SIZES_OF_PIECES = ("split_size", "split_sizes", "split_size_or_sections")


class Made:
    """Builds the result of one call from its record."""

    def __init__(
        self,
        machine: Machine,
        op: knowledge.Op,
        constant: bool,
        facts: dict[str, object] | None,
        tensors: list[Tensor],
        bound: dict[str, Value | tuple[Value, ...]] | None,
    ) -> None:
        self.machine = machine
        self.op = op
        self.constant = constant
        self.facts = facts
        self.tensors = tensors
        self.bound = bound

    def is_sized_by_data(self) -> bool:
        """Whether data decide how large the result is: of `one_hot` where the call does not tell how many classes there are."""
        when = self.op.data_when
        if not self.op.dynamic_shape or when is None or self.bound is None:
            return self.op.dynamic_shape
        given = self.bound.get(when.param, Const(None))
        return isinstance(given, Const) and (
            given.value is None or self.op.holds(when, {when.param: given.value}) is True
        )

    def value(self, returns: knowledge.Returns) -> Value:
        kind = returns.kind
        if kind == "tensor":
            return self.tensor(returns)
        if kind == "tuple":
            items = [self.value(item) for item in returns.items]
            return Sequence("tuple", items, None, "torch.return_types", returns.names)
        if kind == "list":
            return Sequence(
                "tuple" if any(name in self.op.name for name in _GIVING_TUPLES) else "list",
                None,
                self.piece(self.value(returns.items[0])) if returns.items else Unknown("an element"),
                filled=True,
            )
        if kind in ("int", "float", "bool", "number"):
            return self.number(kind)
        if kind == "size":
            return Sequence("tuple", None, Shape(), "torch.Size")
        if kind in ("dtype", "device", "layout", "str"):
            return Static(kind)
        if kind == "none":
            return Const(None)
        return Unknown(f"`{self.op.name}` returns something that depends on its arguments")

    def piece(self, value: Value) -> Value:
        """One of the pieces that `split` cuts, `value`: as long as data says where it says the sizes of all."""
        bound = self.bound or {}
        given = next((bound[name] for name in _SIZES_OF_PIECES if name in bound), None)
        sizes = given[0] if isinstance(given, tuple) and len(given) == 1 else given
        if not (isinstance(value, Tensor) and isinstance(sizes, Sequence) and _is_of_data(element_of(sizes))):
            return value
        dim = bound.get("dim", Const(0))
        along = dim.value if isinstance(dim, Const) and isinstance(dim.value, int) else None
        return replace(value, unbacked=True, open_dim=_dimension(along, value.rank))

    def tensor(self, returns: knowledge.Returns) -> Tensor:
        dtype = rank = None
        if self.facts is not None:
            dtype = knowledge.dtype_after(returns.dtype, self.facts)
            rank = knowledge.rank_after(returns.rank, self.facts)
            if rank is None and self.tensors:
                rank = squeezed_rank(self.op, self.tensors[0], self.facts)
        if rank is None and self.op.name.rpartition(".")[2] == "bincount":
            # It takes nothing but one dimension, and counts in one.
            rank = 1
            weights = (self.bound or {}).get("weights", Const(None))
            dtype = "int64" if weights == Const(None) else None
        if rank is None and returns.rank == "size" and self.bound is not None and _is_one_size(self.bound):
            rank = 1
        if rank is None and self.op.name.rpartition(".")[2] == "permute" and self.bound is not None:
            # It is told every dimension.
            rank = open_dims.how_many(self.bound.get("dims"))
        if dtype is None and self.bound is not None:
            given = self.bound.get("dtype")
            dtype = dtype_of_named(given) if isinstance(given, Value) else None
            if dtype is None and self.op.name == "torch.full" and given in (None, Const(None)):
                dtype = _dtype_of_filled(self.bound.get("fill_value"))
            if dtype is None and self.op.name == "torch.arange" and given in (None, Const(None)):
                dtype = _dtype_of_range(self.bound)
        if dtype is None and self.op.name.rpartition(".")[2] == "where" and len(self.tensors) == 3:
            # Two tensors of one dtype give a third.
            dtypes = {each.dtype for each in self.tensors[1:]}
            dtype = dtypes.pop() if len(dtypes) == 1 else None
        if dtype is None and returns.dtype == "same" and self.has_family_of_first():
            dtype = self.tensors[0].dtype
        if dtype is None and self.machine.sized and self.keeps_floats(returns):
            dtypes = {each.dtype for each in self.tensors}
            dtype = dtypes.pop() if len(dtypes) == 1 else "float"
        if (
            dtype is None
            and self.op.gives_floats
            and (self.bound or {}).get("dtype", Const(None)) == Const(None)
        ):
            dtype = "float"
        unbacked = self.is_sized_by_data() and not self.constant
        if not unbacked and any(tensor.unbacked for tensor in self.giving_sizes()):
            # A reduction over everything loses the size that depends on data; others may keep it.
            unbacked = rank != 0
        root, converted = 0, False
        if self.op.aliases and self.bound is not None:
            source = self.bound.get(self.op.params[self.op.aliases[0]].name)
            if isinstance(source, Tensor):
                root, converted = source.root, source.converted
        open_dim: int | None = 0
        given_size = self.open_size()
        if given_size is not None and not unbacked:
            unbacked, open_dim = True, given_size
        elif unbacked and not self.is_sized_by_data():
            sources = [tensor for tensor in self.tensors if tensor.unbacked]
            dims = {self.open_dim_after(tensor) for tensor in sources}
            open_dim = dims.pop() if len(dims) == 1 else None
            short, bound = self.op.name.rpartition(".")[2], self.bound or {}
            reduces = short in open_dims.REDUCING and all(
                open_dims.closes(tensor, bound, rank) for tensor in sources
            )
            counted = (
                {open_dims.closes_by_count(each, bound) for each in sources} if short == "topk" else set()
            )
            if reduces or counted == {True}:
                # None: a dimension of one element may be left of it.
                unbacked, open_dim = False, None
            elif None in counted:
                open_dim = None
            elif short in ("matmul", "mm", "bmm", "mv", "dot") and len(self.tensors) == 2:
                unbacked, open_dim = open_dims.after_product(self.tensors[0], self.tensors[1], rank)
            elif self.op.pointwise:
                unbacked, open_dim = broadcast_size(self.tensors, rank)
        elif self.op.pointwise and not unbacked:
            open_dim = broadcast_size(self.tensors, rank)[1]
        origin = "constant" if self.constant else "fresh"
        return Tensor(
            origin,
            "",
            dtype,
            rank,
            unbacked,
            root,
            open_dim=open_dim,
            converted=converted,
            requires_grad=self.has_gradient(dtype),
            single=single_after(self.op, self.facts, rank, self.tensors),
        )

    def giving_sizes(self) -> list[Tensor]:
        """The tensors whose sizes the result may have."""
        short = self.op.name.rpartition(".")[2].rstrip("_")
        if short in _SIZED_BY_NONE:
            return []
        return self.tensors[:1] if short in _SIZED_BY_FIRST else self.tensors

    def has_family_of_first(self) -> bool:
        """Whether all that is known of the first argument's dtype is its family, which the result has as well."""
        bound = self.bound or {}
        first = next(iter(bound.values()), None)
        given = bound.get("dtype", Const(None)) != Const(None)
        return bool(self.tensors) and first is self.tensors[0] and first.dtype in _FAMILIES and not given

    def keeps_floats(self, returns: knowledge.Returns) -> bool:
        """Whether floats are given, and floats of the same precision come back: what is measured of relu leaves its dtype open."""
        short = self.op.name.rpartition(".")[2]
        keeps = returns.dtype in ("real", "float", "promote") or short in ("relu", "relu6")
        floats = all(dtype_family(each.dtype) == "float" for each in self.tensors)
        return keeps and floats and bool(self.tensors) and "dtype" not in (self.bound or {})

    def has_gradient(self, dtype: str | None) -> bool | None:
        """True where a gradient flows on to the result, which is then of floats."""
        if self.machine.without_gradients or not any(tensor.requires_grad for tensor in self.tensors):
            return None
        if self.op.name.rpartition(".")[2] in _WITHOUT_GRADIENTS:
            return False
        return True if dtype_family(dtype) in (None, "float") else None

    def open_dim_after(self, source: Tensor) -> int | None:
        """Where the open dimension of an argument is in the result."""
        name = self.op.name.rpartition(".")[2]
        if name not in _MOVING and name not in open_dims.REDUCING:
            return source.open_dim
        first = self.bound.get(self.op.params[0].name) if self.bound and self.op.params else None
        moves = first is source or name == "stack"
        return open_dims.after(name, source, self.bound) if self.bound and moves else None

    def open_size(self) -> int | None:
        """The dimension of a newly made tensor that was given a size from data: `torch.zeros(n, 3)`, `torch.arange(n)`, `t.repeat(n, 1)`."""
        short = self.op.name.rpartition(".")[2]
        if self.bound is not None and short in ("expand", "repeat"):
            return self.open_copies(self.bound, short)
        if self.bound is None or short not in MADE_IN_A_SIZE:
            return None
        if "size" in self.bound:
            given = self.bound["size"]
            sizes = flattened(list(given) if isinstance(given, tuple) else [given])
        else:
            sizes = [value for name in ("n", "end") if isinstance(value := self.bound.get(name), Value)]
        open_ones = [index for index, size in enumerate(sizes) if _is_of_data(size)]
        return open_ones[0] if open_ones else None

    def open_copies(self, bound: Mapping[str, Value | tuple[Value, ...]], short: str) -> int | None:
        """The dimension along which data says how often a tensor is there. To expand one that it has may change nothing."""
        given = bound.get("size" if short == "expand" else "repeats")
        sizes = flattened(list(given) if isinstance(given, tuple) else [given] if given is not None else [])
        if short == "expand":
            rank = self.tensors[0].rank if self.tensors else None
            if rank is None and len(sizes) > 1 and all(size == Const(-1) for size in sizes[1:]):
                # `row.expand(n, -1)`: what it has it keeps, and is there n times.
                rank = len(sizes) - 1
            sizes = sizes[: len(sizes) - rank] if rank is not None else []
        return next((index for index, size in enumerate(sizes) if _is_of_data(size)), None)

    def number(self, kind: str) -> Value:
        if self.op.data_dependent and not self.constant:
            return TensorScalar("" if kind == "number" else kind, self.op.name)
        if self.constant and self.op.data_dependent:
            return Static(kind)
        return Static("" if kind == "number" else kind)


# Tensors of the sizes of what they are made of, however much is put into them, and of sizes that are written out.
_SIZED_BY_FIRST = frozenset(
    {
        "index_add",
        "index_copy",
        "index_fill",
        "index_put",
        "index_reduce",
        "scatter",
        "scatter_add",
        "scatter_reduce",
    }
)
_SIZED_BY_NONE = frozenset({"new_zeros", "new_ones", "new_full", "new_empty"})

# What a dtype is known by where nothing more is known of it.
_FAMILIES = ("float", "int", "complex")


def _dtype_of_filled(number: Value | tuple[Value, ...] | None) -> str | None:
    """The dtype of a tensor that is filled with a number of Python: that of floats is a setting of torch."""
    type_ = number.type if isinstance(number, (TensorScalar, Shape, Static)) else ""
    return {"int": "int64", "bool": "bool"}.get(type_)


def _dtype_of_range(bound: Mapping[str, Value | tuple[Value, ...]]) -> str | None:
    """The dtype of what counts in whole numbers."""
    given = [bound[name] for name in ("start", "end", "step") if name in bound]
    return "int64" if all(isinstance(each, Value) and _is_whole_number(each) for each in given) else None


def _is_one_size(bound: Mapping[str, Value | tuple[Value, ...]]) -> bool:
    """Whether a call is given one size, `torch.zeros(n)`, and n is a number, where it may be a tuple as well."""
    given = bound.get("size", bound.get("shape"))
    if isinstance(given, tuple) and len(given) == 1:
        given = given[0]
    return isinstance(given, Value) and _is_whole_number(given)


def _is_whole_number(value: Value) -> bool:
    """Whether `value` is an int of Python's, read out of a tensor or not."""
    return all(
        type(each.value) is int
        if isinstance(each, Const)
        else isinstance(each, (Shape, TensorScalar, Static)) and each.type == "int"
        for each in options(value)
    )


def _is_of_data(size: Value) -> bool:
    """Whether a size was read out of tensor data, or is a tensor that torch reads as a number."""
    if isinstance(size, Tensor):
        return (
            size.origin in ("input", "buffer", "fresh")
            and dtype_family(size.dtype) == "int"
            and size.rank in (0, None)
        )
    return (isinstance(size, Shape) and size.unbacked) or (
        isinstance(size, TensorScalar) and size.type in ("", "int")
    )


def single_after(
    op: knowledge.Op, facts: Mapping[str, object] | None, rank: int | None, tensors: list[Tensor]
) -> int | None:
    """The dimension of one element that a call leaves: one that it made, or kept when it reduced it."""
    if op.name.rpartition(".")[2] in ("nonzero", "argwhere") and [each.rank for each in tensors] == [1]:
        # A row for each element that it found, and in it one number for each dimension of what it searched.
        return 1
    if op.name.rpartition(".")[2] in ("t", "T", "numpy_T") and [each.rank for each in tensors] == [2]:
        single = tensors[0].single
        return None if single is None else 1 - single
    if facts is None or not (op.name.rpartition(".")[2] == "unsqueeze" or facts.get("keepdim") is True):
        return None
    return _dimension(facts.get("dim"), rank)


def squeezed_rank(op: knowledge.Op, tensor: Tensor, facts: Mapping[str, object]) -> int | None:
    """The rank after `squeeze` took a dimension that is known to have one element; None where it is not known."""
    if op.name.rpartition(".")[2] not in ("squeeze", "squeeze_") or tensor.rank is None:
        return None
    dim = _dimension(facts.get("dim"), tensor.rank)
    return tensor.rank - 1 if dim is not None and dim == tensor.single else None


def flattened(values: list[Value]) -> list[Value]:
    flat: list[Value] = []
    for value in values:
        if isinstance(value, Sequence) and value.type_name != "torch.Size":
            flat.extend(
                flattened(value.items)
                if value.items is not None
                else [value.element]
                if value.element is not None
                else []
            )
        else:
            flat.append(value)
    return flat


def _dimension(dim: object, rank: int | None) -> int | None:
    """A dimension counted from the front; None where it is not one known number."""
    if not isinstance(dim, int) or isinstance(dim, bool):
        return None
    if dim >= 0:
        return dim
    return dim + rank if rank is not None else None
