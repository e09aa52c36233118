"""Calls of torch functions and tensor methods: results by torch's own schemas, writes and sizes noted."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from exportlens.inference import knowledge, open_dims
from exportlens.inference.autocasting import recast
from exportlens.inference.knowledge import TensorFacts
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_reads import notice_made_of_held, notice_numpy
from exportlens.inference.op_results import MADE_IN_A_SIZE, Made, flattened, squeezed_rank
from exportlens.inference.operators import number_type
from exportlens.inference.places import Conversion, Mutation
from exportlens.inference.sizes import after_call
from exportlens.inference.tensors import dtype_family, dtype_of_named, size_of
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


# What makes a tensor of NumPy data.
_OF_ARRAYS = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy"})


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


def _told(value: Value, fact: object) -> object:
    """What tells overloads apart: also that `value` is a number."""
    number = isinstance(value, (Shape, TensorScalar)) and fact is _UNKNOWN
    return knowledge.SOME_NUMBER if number else fact


def call_torch(
    machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value | None:
    """The result of calling the torch function or class `name`; None where torch's record does not know it."""
    op = knowledge.lookup_function(name)
    if name == "torch.sym_not" and len(args) == 1 and isinstance(args[0], TensorScalar):
        return replace(args[0], type="bool")
    if name == "torch.sym_sqrt" and len(args) == 1 and isinstance(args[0], (TensorScalar, Shape)):
        return replace(args[0], type="float")
    if name in ("torch.sym_max", "torch.sym_min") and not kwargs:
        data = next((each for each in args if isinstance(each, TensorScalar)), None)
        if data is not None:
            # They give a float where any of the numbers is one.
            kinds = {number_type(each) for each in args}
            return replace(data, type="float" if "float" in kinds else "int" if kinds == {"int"} else "")
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
    rank, open_dim = None, None
    if copying is not None:
        fact_args = [facts_of(value) for value in (tensor, *args)]
        fact_kwargs = {key: facts_of(value) for key, value in kwargs.items()}
        chosen = copying.match(fact_args, fact_kwargs)
        facts = chosen.bind(fact_args, fact_kwargs)
        rank = knowledge.rank_after(chosen.returned(facts or {}).rank, facts) if facts is not None else None
        if rank is None and facts is not None:
            rank = squeezed_rank(chosen, tensor, facts)
        bound = chosen.bind([tensor, *args], kwargs)
        open_dim = None if bound is None else open_dims.after(chosen.name.rpartition(".")[2], tensor, bound)
    return replace(made, rank=rank, open_dim=open_dim if made.unbacked else 0, single=None)


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
            machine.notice(Conversion(machine.site(frame), node, tensor, "list", variables=frame.visible()))
        family = dtype_family(tensor.dtype)
        # Of a list of no known length each use is told of where it is made.
        kind = family if family in ("bool", "int", "float") and not tensor.unbacked else ""
        element = Static(kind) if readable else TensorScalar(kind, tensor.name or "a tensor")
        if tensor.rank == 0:
            return element
        inner: Value = element
        for _ in range((tensor.rank or 1) - 1):
            inner = Sequence("list", None, inner)
        return Sequence("list", None, inner)
    if name == "numpy":
        if not constant and machine.emits(Conversion):
            machine.notice(Conversion(machine.site(frame), node, tensor, "numpy", variables=frame.visible()))
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
            tensor,
            dtype=dtype,
            origin="constant" if constant else "fresh",
            name="",
            converted=True,
            requires_grad=tensor.requires_grad if dtype.startswith(("float", "bfloat")) else None,
            recast=False,
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
            requires_grad=False if name in ("detach", "detach_") else tensor.requires_grad,
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
    return replace(tensor, dtype=dtype, origin=origin, converted=name != "type_as", recast=False)


def _read_out(machine: Machine, tensor: Tensor, how: str, frame: Frame, node: ast.AST) -> Value:
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
    chosen = op.match(
        [_told(*each) for each in zip(plain_args, fact_args, strict=True)],
        {key: _told(plain_kwargs[key], fact) for key, fact in fact_kwargs.items()},
    )
    bound = chosen.bind(plain_args, plain_kwargs)
    facts = chosen.bind(fact_args, fact_kwargs)
    values = flattened(plain_args) + flattened(list(plain_kwargs.values()))
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
    made = Made(machine, chosen, constant, facts, tensors, bound).value(chosen.returned(facts or {}))
    if bound is not None:
        made = after_call(chosen.name, chosen.pointwise, tensors, bound, made, machine.sized)
    made = recast(machine, chosen, name, values, made)
    if name in _OF_ARRAYS and isinstance(made, Tensor) and plain_args and isinstance(plain_args[0], Array):
        made = replace(made, rank=None)
    if name == "torch.from_numpy" and isinstance(made, Tensor):
        # It has the dtype of the array, and what was measured that of the one that was tried.
        given = plain_args[0] if plain_args else None
        made = replace(made, dtype=given.dtype if isinstance(given, Array) else None)
    if isinstance(made, Tensor) and _is_new_number(machine, chosen, plain_args):
        # Non-strict tracing knows the number, also of what is computed from it.
        return replace(made, origin="literal" if machine.settings.strict else "constant")
    return replace(made, origin="literal") if literal and isinstance(made, Tensor) else made


def _numbers_held(op: knowledge.Op, bound: Mapping[str, Value | tuple[Value, ...]]) -> list[Value]:
    """The numbers of NumPy's that the model holds, among the arguments that are no sizes: of a size, a later operator may tell the tracer which it is.

    A tensor that is cut or padded by such a number, or that gets all of its sizes so, fails at once.
    """
    short = op.name.rpartition(".")[2]
    if short in MADE_IN_A_SIZE:
        return []
    given = [value for name, value in bound.items() if name not in _SIZES or short in _SETTLED_BY_SIZES]
    flat = flattened([item for value in given for item in (value if isinstance(value, tuple) else (value,))])
    held = (value for value in flat if isinstance(value, Array) and value.held)
    if short not in ("view", "reshape"):
        return list(held)
    if any(isinstance(each, Const) and each.value == -1 for each in flat):
        return []
    # A Python number that was made of it (of no dimension) is one that the tracer can find out.
    return [value for value in held if not value.plain]


def _numpy_dims(bound: Mapping[str, Value | tuple[Value, ...]]) -> list[Value]:
    """Numbers of NumPy's that name a dimension, wherever they come from: an operator needs to know which one it is."""
    if _DIMS.isdisjoint(bound):
        return []
    given = [value for name, value in bound.items() if name in _DIMS]
    flat = flattened([item for value in given for item in (value if isinstance(value, tuple) else (value,))])
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
    return isinstance(args[0], Sequence) and (args[0].items is None or len(flattened([args[0]])) > 1)


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
            given = [*(bound or {}).values(), *kwargs.values()]
            operands = tuple(
                each
                for value in given
                for each in (value if isinstance(value, tuple) else (value,))
                if each is not target
            )
            how = op.name.rpartition(".")[2]
            machine.notice(Mutation(machine.site(frame), node, target, how, operands, frame.receiver))
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
        for value in flattened(list(given)) if isinstance(given, tuple) else flattened([given]):
            if from_data(value):
                machine.notice(Conversion(machine.site(frame), node, value, "size", param.name))
