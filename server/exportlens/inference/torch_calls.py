"""Calls of torch functions and tensor methods: results by torch's own schemas, writes and sizes noted."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from exportlens.inference import knowledge, open_dims
from exportlens.inference.iteration import names_in
from exportlens.inference.knowledge import TensorFacts
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_reads import notice_made_of_held, notice_numpy
from exportlens.inference.places import Conversion, Mutation
from exportlens.inference.tensors import broadcast_size, dtype_of_named, size_of
from exportlens.inference.values import (
    Array,
    Choice,
    Const,
    Named,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    from_data,
)

_UNKNOWN = knowledge.UNKNOWN


# After these the dimension whose size depends on data may be another one.
_MOVING = frozenset(
    {
        "stack", "hstack", "vstack", "dstack", "column_stack", "t", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis",
        "view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "unfold", "expand", "repeat", "tile", "matmul", "mm", "bmm",
        "einsum", "outer", "tensordot", "gather", "cdist", "meshgrid", "one_hot", "sum", "mean", "max", "min", "amax", "amin", "rot90",
        "adjoint", "expand_as", "view_as", "reshape_as", "take", "take_along_dim", "select", "index_select", "broadcast_to", "diag",
    }
)  # fmt: skip


# What makes a tensor of NumPy data.
_OF_ARRAYS = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy"})

# What makes a tensor in the very size that it is given.
_MADE_IN_A_SIZE = frozenset(
    {
        "zeros", "ones", "empty", "full", "rand", "randn", "randint", "new_zeros", "new_ones", "new_empty", "new_full", "arange", "randperm",
    }
)  # fmt: skip


def facts_of(value: Value) -> object:
    """`value` in the words of the knowledge base."""
    if isinstance(value, Tensor):
        dtype = (
            value.dtype
            if value.dtype is not None and (value.dtype == "bool" or value.dtype[-1].isdigit())
            else None
        )
        return TensorFacts(dtype, value.rank)
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Sequence) and value.kind in ("list", "tuple") and value.items is not None:
        return [facts_of(item) for item in value.items]
    if isinstance(value, Named):
        constant = knowledge.lookup_constant(value.name)
        if constant is not None:
            return constant
        dtype = dtype_of_named(value)
        if dtype is not None:
            return knowledge.lookup_constant("torch." + dtype) or _UNKNOWN
    return _UNKNOWN


def call_torch(
    machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value | None:
    """The result of calling the torch function or class `name`; None where torch's record does not know it."""
    op = knowledge.lookup_function(name)
    if name == "torch.sym_not" and len(args) == 1 and isinstance(args[0], TensorScalar):
        return replace(args[0], type="bool")
    if name == "torch.sym_sqrt" and len(args) == 1 and isinstance(args[0], (TensorScalar, Shape)):
        return replace(args[0], type="float")
    return None if op is None else apply_op(machine, op, name, args, kwargs, frame, node)


_OF_CONTAINERS = frozenset(
    {"get", "items", "keys", "values", "pop", "update", "copy", "index", "count", "append", "extend", "insert", "clear", "add", "split"}
)  # fmt: skip


def is_tensor_method(name: str) -> bool:
    """Whether `name` is a method of tensors, and of no container."""
    return name not in _OF_CONTAINERS and (
        name in ("item", "tolist", "numpy", "size", "dim", "numel")
        or knowledge.lookup_method(name) is not None
    )


def call_tensor_method(
    machine: Machine,
    tensor: Tensor,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """The result of `tensor.name(...)`."""
    special = _method_specials(machine, tensor, name, args, kwargs, frame, node)
    if special is not None:
        return special
    op = knowledge.lookup_method(name)
    if op is None:
        return Unknown(f"the tensor method `{name}`")
    made = apply_op(machine, op, "torch.Tensor." + name, [tensor, *args], kwargs, frame, node)
    return (
        _reshaped(made, op, tensor, args, kwargs) if name in RESHAPING and isinstance(made, Tensor) else made
    )


# What these write in place is the shape of the tensor itself.
RESHAPING = frozenset(
    {"squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "resize_", "resize_as_", "set_"}
)


def _reshaped(
    made: Tensor, op: knowledge.Op, tensor: Tensor, args: list[Value], kwargs: dict[str, Value]
) -> Tensor:
    """The tensor after a call that changes its shape in place: of the dimensions that the same call on a copy leaves."""
    copying = knowledge.lookup_method(op.name.rpartition(".")[2].removesuffix("_"))
    rank = None
    if copying is not None:
        fact_args = [facts_of(value) for value in (tensor, *args)]
        fact_kwargs = {key: facts_of(value) for key, value in kwargs.items()}
        chosen = copying.match(fact_args, fact_kwargs)
        facts = chosen.bind(fact_args, fact_kwargs)
        rank = knowledge.rank_after(chosen.returned(facts or {}).rank, facts) if facts is not None else None
        if rank is None and facts is not None:
            rank = _squeezed_rank(chosen, tensor, facts)
    return replace(made, rank=rank, open_dim=None if made.unbacked else 0, single=None)


def _squeezed_rank(op: knowledge.Op, tensor: Tensor, facts: Mapping[str, object]) -> int | None:
    """The rank after `squeeze` took a dimension that is known to have one element; None where it is not known."""
    if op.name.rpartition(".")[2] not in ("squeeze", "squeeze_") or tensor.rank is None:
        return None
    dim = _dimension(facts.get("dim"), tensor.rank)
    return tensor.rank - 1 if dim is not None and dim == tensor.single else None


def _dimension(dim: object, rank: int | None) -> int | None:
    """A dimension counted from the front; None where it is not one known number."""
    if not isinstance(dim, int) or isinstance(dim, bool):
        return None
    if dim >= 0:
        return dim
    return dim + rank if rank is not None else None


def _single_after(op: knowledge.Op, facts: Mapping[str, object] | None, rank: int | None) -> int | None:
    """The dimension of one element that a call leaves: one that it made, or kept when it reduced it."""
    if facts is None or not (op.name.rpartition(".")[2] == "unsqueeze" or facts.get("keepdim") is True):
        return None
    return _dimension(facts.get("dim"), rank)


def _method_specials(
    machine: Machine,
    tensor: Tensor,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value | None:
    constant = tensor.origin == "constant"
    readable = constant or tensor.origin == "outside"
    if name == "size":
        dim = args[0] if args else kwargs.get("dim")
        if dim is None:
            from exportlens.inference.tensors import shape_of

            return shape_of(tensor)
        return size_of(tensor, dim)
    if name in ("dim", "ndimension"):
        return Const(tensor.rank) if tensor.rank is not None else Static("int")
    if name in ("numel", "nelement", "__len__"):
        return Shape(tensor.unbacked, None, None, tensor.name or "a tensor", whole=not tensor.unbacked)
    if name == "item":
        return _read_out(machine, tensor, "item", frame, node)
    if name == "tolist":
        if not readable and machine.emits(Conversion):
            machine.notice(Conversion(machine.site(frame), node, tensor, "list"))
        element = Static() if readable else TensorScalar("", tensor.name or "a tensor")
        if tensor.rank == 0:
            return element
        inner: Value = element
        for _ in range((tensor.rank or 1) - 1):
            inner = Sequence("list", None, inner)
        return Sequence("list", None, inner)
    if name == "numpy":
        if not constant and machine.emits(Conversion):
            machine.notice(Conversion(machine.site(frame), node, tensor, "numpy", variables=names_in(frame)))
        return Array(not constant, tensor.dtype, tensor.rank)
    if name in ("to", "type", "type_as"):
        return _convert(tensor, name, args, kwargs)
    if name in ("float", "double", "half", "bfloat16", "int", "long", "short", "bool", "byte", "char"):
        dtype = {
            "float": "float32",
            "double": "float64",
            "half": "float16",
            "int": "int32",
            "long": "int64",
            "short": "int16",
            "byte": "uint8",
            "char": "int8",
        }.get(name, name)
        return replace(
            tensor, dtype=dtype, origin="constant" if constant else "fresh", name="", converted=True
        )
    if name in (
        "cuda",
        "cpu",
        "contiguous",
        "clone",
        "detach",
        "requires_grad_",
        "detach_",
        "retain_grad",
        "pin_memory",
    ):
        return replace(
            tensor,
            origin="constant" if constant else tensor.origin if name.endswith("_") else "fresh",
            root=tensor.root if name != "clone" else 0,
            converted=name in ("cuda", "cpu") or (tensor.converted and name != "clone"),
        )
    return None


def _convert(tensor: Tensor, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    given = [*args, *(kwargs[key] for key in ("dtype", "other") if key in kwargs)]
    if name == "type" and not given:
        return Static("str")
    dtype = tensor.dtype
    for value in given:
        found = dtype_of_named(value)
        if (
            found is not None
            and isinstance(value, Named)
            and knowledge.lookup_constant(value.name) is not None
        ):
            dtype = found
        elif isinstance(value, Tensor):
            dtype = value.dtype
        elif (
            isinstance(value, (Static, Unknown))
            and not (isinstance(value, Static) and value.type == "device")
        ) or (isinstance(value, Const) and isinstance(value.value, str) and value.value.startswith("torch.")):
            dtype = None
    origin = "constant" if tensor.origin == "constant" else "fresh"
    return replace(tensor, dtype=dtype, origin=origin, converted=name != "type_as")


def _read_out(machine: Machine, tensor: Tensor, how: str, frame: Frame, node: ast.AST) -> Value:
    from exportlens.inference.tensors import dtype_family

    kind = dtype_family(tensor.dtype) or ""
    if tensor.origin in ("constant", "outside"):
        return Static(kind)
    if machine.emits(Conversion):
        machine.notice(Conversion(machine.site(frame), node, tensor, how))
    return TensorScalar(kind, tensor.name or "a tensor")


def apply_op(
    machine: Machine,
    op: knowledge.Op,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """The result of one call of `op`, by the overload that fits the arguments."""
    plain_args = [_single(value) for value in args]
    plain_kwargs = {key: _single(value) for key, value in kwargs.items()}
    fact_args, fact_kwargs = (
        [facts_of(value) for value in plain_args],
        {key: facts_of(value) for key, value in plain_kwargs.items()},
    )
    chosen = op.match(fact_args, fact_kwargs)
    bound = chosen.bind(plain_args, plain_kwargs)
    facts = chosen.bind(fact_args, fact_kwargs)
    values = _flatten(plain_args) + _flatten(list(plain_kwargs.values()))
    tensors = [value for value in values if isinstance(value, Tensor)]
    constant = _is_constant(machine, chosen, values, tensors)
    literal = constant and _is_long_literal(machine, chosen, plain_args)
    constant = constant and not literal
    written = _note_writes(machine, chosen, bound, plain_kwargs, frame, node)
    if bound is not None:
        _note_sizes(machine, chosen, bound, frame, node)
        if not constant:
            for number in [*(_numbers_held(chosen, bound) if tensors else ()), *_numpy_dims(bound)]:
                notice_numpy(machine, number, "argument", frame, node)
    if plain_args and name in _OF_ARRAYS:
        notice_made_of_held(machine, plain_args[0], frame, node)
    if chosen.returns.kind == "self" and plain_args:
        return plain_args[0]
    if written is not None:
        return written
    made = _Made(machine, chosen, constant, facts, tensors, bound).value(chosen.returned(facts or {}))
    if name in _OF_ARRAYS and isinstance(made, Tensor) and plain_args and isinstance(plain_args[0], Array):
        made = replace(made, rank=None)
    if isinstance(made, Tensor) and _is_new_number(machine, chosen, plain_args):
        # Non-strict tracing knows the number, also of what is computed from it.
        return replace(made, origin="literal" if machine.settings.strict else "constant")
    return replace(made, origin="literal") if literal and isinstance(made, Tensor) else made


def _numbers_held(op: knowledge.Op, bound: Mapping[str, Value | tuple[Value, ...]]) -> list[Value]:
    """The numbers of NumPy's that the model holds, among the arguments that are no sizes: of a size, a later operator may tell the tracer which it is.

    A tensor that is cut or padded by such a number, or that gets all of its sizes so, fails at once.
    """
    short = op.name.rpartition(".")[2]
    if short in _MADE_IN_A_SIZE:
        return []
    given = [value for name, value in bound.items() if name not in _SIZES or short in _SETTLED_BY_SIZES]
    flat = _flatten([item for value in given for item in (value if isinstance(value, tuple) else (value,))])
    held = (value for value in flat if isinstance(value, Array) and value.held)
    if short not in ("view", "reshape"):
        return list(held)
    if any(isinstance(each, Const) and each.value == -1 for each in flat):
        return []
    # A Python number that was made of it (of no dimension) is one that the tracer can find out.
    return [value for value in held if value.rank is None]


def _numpy_dims(bound: Mapping[str, Value | tuple[Value, ...]]) -> list[Value]:
    """Numbers of NumPy's that name a dimension, wherever they come from: an operator needs to know which one it is."""
    if _DIMS.isdisjoint(bound):
        return []
    given = [value for name, value in bound.items() if name in _DIMS]
    flat = _flatten([item for value in given for item in (value if isinstance(value, tuple) else (value,))])
    return [value for value in flat if isinstance(value, Array) and not value.held]


# Strict tracing fails in these where a size is a number of NumPy's that it does not know, whatever follows.
_SETTLED_BY_SIZES = frozenset({"view", "reshape", "split", "chunk", "pad"})

_DIMS = frozenset({"dim", "dims", "dim0", "dim1", "axis", "axis0", "axis1", "start_dim", "end_dim"})

_SIZES = frozenset(
    {
        "size", "sizes", "shape", "repeats", "split_size", "split_sizes", "split_size_or_sections", "sections", "start", "end", "step",
        "length", "k", "n", "m", "pad", "steps", "num_samples", "indices_or_sections", "unflattened_size",
    }
)  # fmt: skip


def _single(value: Value) -> Value:
    """The tensor of a Choice between a tensor and None: what an operator must have been given."""
    if isinstance(value, Choice):
        rest = [
            option for option in value.options if not (isinstance(option, Const) and option.value is None)
        ]
        if len(rest) == 1 or (rest and isinstance(rest[0], Tensor)):
            return rest[0]
    return value


def _flatten(values: list[Value]) -> list[Value]:
    flat: list[Value] = []
    for value in values:
        if isinstance(value, Sequence) and value.type_name != "torch.Size":
            flat.extend(
                _flatten(value.items)
                if value.items is not None
                else [value.element]
                if value.element is not None
                else []
            )
        else:
            flat.append(value)
    return flat


def _is_constant(machine: Machine, op: knowledge.Op, values: list[Value], tensors: list[Tensor]) -> bool:
    """Whether the result is known while tracing: made outside of it, or a literal turned into a tensor."""
    if not machine.tracing:
        return all(tensor.origin == "constant" for tensor in tensors)
    if op.name in ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor") and values:
        return all(
            isinstance(value, (Const, Static, Named)) or (isinstance(value, Shape) and not value.unbacked)
            for value in values
        )
    return bool(tensors) and not op.random and all(tensor.origin == "constant" for tensor in tensors)


def _is_long_literal(machine: Machine, op: knowledge.Op, args: list[Value]) -> bool:
    """Whether a list of several numbers becomes a tensor while tracing: torch keeps the values of one element only (`CONSTANT_NUMEL_LIMIT`)."""
    if not machine.tracing or op.name not in ("torch.tensor", "torch.as_tensor") or not args:
        return False
    return isinstance(args[0], Sequence) and (args[0].items is None or len(_flatten([args[0]])) > 1)


def _is_new_number(machine: Machine, op: knowledge.Op, args: list[Value]) -> bool:
    """Whether `x.new_tensor(3.0)` makes a tensor of one number, which torch can read out but strict tracing cannot decide on."""
    return (
        machine.tracing
        and op.name == "torch.Tensor.new_tensor"
        and len(args) > 1
        and not isinstance(args[1], (Array, Sequence, Tensor))
        and not from_data(args[1])
    )


def _note_writes(
    machine: Machine,
    op: knowledge.Op,
    bound: dict[str, Value | tuple[Value, ...]] | None,
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value | None:
    """Note what the call writes in place; the value that comes back where that is what was written."""
    out = kwargs.get("out")
    targets: list[Value] = [out] if isinstance(out, Tensor) else []
    if bound is not None and (not op.mutates_when or _is_true(bound.get(op.mutates_when))):
        for index in op.mutates:
            value = bound.get(op.params[index].name)
            if isinstance(value, Tensor):
                targets.append(value)
    for target in targets:
        if machine.emits(Mutation):
            machine.notice(Mutation(machine.site(frame), node, target, op.name.rpartition(".")[2]))
    return targets[0] if targets and op.returns.kind == "tensor" else None


def _is_true(value: object) -> bool:
    return isinstance(value, Const) and bool(value.value)


def _note_sizes(
    machine: Machine,
    op: knowledge.Op,
    bound: dict[str, Value | tuple[Value, ...]],
    frame: Frame,
    node: ast.AST,
) -> None:
    """Note numbers from data that are given as sizes."""
    if not machine.emits(Conversion):
        return
    for param in op.params:
        given = bound.get(param.name)
        if given is None or not param.type.startswith("int"):
            continue
        for value in _flatten(list(given)) if isinstance(given, tuple) else _flatten([given]):
            if from_data(value):
                machine.notice(Conversion(machine.site(frame), node, value, "size", param.name))


# The operator gives a list, the function of Python that calls it a tuple.
_GIVING_TUPLES = ("split", "where", "nonzero")


class _Made:
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
                self.value(returns.items[0]) if returns.items else Unknown("an element"),
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

    def tensor(self, returns: knowledge.Returns) -> Tensor:
        dtype = rank = None
        if self.facts is not None:
            dtype = knowledge.dtype_after(returns.dtype, self.facts)
            rank = knowledge.rank_after(returns.rank, self.facts)
            if rank is None and self.tensors:
                rank = _squeezed_rank(self.op, self.tensors[0], self.facts)
        if rank is None and self.op.name.rpartition(".")[2] == "bincount":
            # It takes nothing but one dimension, and counts in one.
            rank = 1
            weights = (self.bound or {}).get("weights", Const(None))
            dtype = "int64" if weights == Const(None) else None
        if rank is None and self.op.name.rpartition(".")[2] == "permute" and self.bound is not None:
            # It is told every dimension.
            rank = open_dims.how_many(self.bound.get("dims"))
        if dtype is None and self.bound is not None:
            given = self.bound.get("dtype")
            dtype = dtype_of_named(given) if isinstance(given, Value) else None
        unbacked = self.op.dynamic_shape and not self.constant
        if not unbacked and any(tensor.unbacked for tensor in self.tensors):
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
        elif unbacked and not self.op.dynamic_shape:
            sources = [tensor for tensor in self.tensors if tensor.unbacked]
            dims = {self.open_dim_after(tensor) for tensor in sources}
            open_dim = dims.pop() if len(dims) == 1 else None
            if self.op.name.rpartition(".")[2] in open_dims.REDUCING and all(
                open_dims.closes(tensor, self.bound or {}, rank) for tensor in sources
            ):
                # None: a dimension of one element may be left of it.
                unbacked, open_dim = False, None
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
            single=_single_after(self.op, self.facts, rank),
        )

    def open_dim_after(self, source: Tensor) -> int | None:
        """Where the open dimension of an argument is in the result."""
        name = self.op.name.rpartition(".")[2]
        if name not in _MOVING and name not in open_dims.REDUCING:
            return source.open_dim
        first = self.bound.get(self.op.params[0].name) if self.bound and self.op.params else None
        return open_dims.after(name, source, self.bound) if self.bound and first is source else None

    def open_size(self) -> int | None:
        """The dimension of a newly made tensor that was given a size from data: `torch.zeros(n, 3)`, `torch.arange(n)`, `t.repeat(n, 1)`."""
        short = self.op.name.rpartition(".")[2]
        if self.bound is not None and short in ("expand", "repeat"):
            return self.open_copies(self.bound, short)
        if self.bound is None or short not in _MADE_IN_A_SIZE:
            return None
        if "size" in self.bound:
            given = self.bound["size"]
            sizes = _flatten(list(given) if isinstance(given, tuple) else [given])
        else:
            sizes = [value for name in ("n", "end") if isinstance(value := self.bound.get(name), Value)]
        open_ones = [index for index, size in enumerate(sizes) if _is_of_data(size)]
        return open_ones[0] if open_ones else None

    def open_copies(self, bound: Mapping[str, Value | tuple[Value, ...]], short: str) -> int | None:
        """The dimension along which data says how often a tensor is there. To expand one that it has may change nothing."""
        given = bound.get("size" if short == "expand" else "repeats")
        sizes = _flatten(list(given) if isinstance(given, tuple) else [given] if given is not None else [])
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


def _is_of_data(size: Value) -> bool:
    """Whether a size was read out of tensor data."""
    return (isinstance(size, Shape) and size.unbacked) or (
        isinstance(size, TensorScalar) and size.type in ("", "int")
    )
