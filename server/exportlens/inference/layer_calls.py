"""What a call of a torch.nn layer gives: containers run their items, others follow torch's own record."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_reads import notice_numpy
from exportlens.inference.sizes import after_layer
from exportlens.inference.values import Array, Const, Instance, Named, Sequence, Tensor, Unknown, Value


def call_external_module(
    machine: Machine,
    instance: Instance,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """Call an instance of a torch.nn class: containers run their items, others follow torch's own record."""
    canonical = knowledge.canonical_name(name) or name
    if canonical == "torch.nn.Sequential":
        return _run_sequential(machine, instance, args, frame, node)
    known = knowledge.lookup_module(name)
    if known is None:
        return Unknown(f"calls `{name}`")
    from exportlens.inference.torch_calls import apply_op

    for number in _numbers_held(canonical, instance.arguments):
        notice_numpy(machine, number, "layer", frame, node)
    result = apply_op(machine, known.forward, name, args, kwargs, frame, node)
    if isinstance(result, Tensor) and any(param.name == "reduction" for param in known.params):
        result = replace(result, rank=_rank_of_loss(instance.arguments))
    if machine.tracing and known.state:
        result = _computed(result)
    if not machine.without_gradients and any(
        entry.type == "parameter" and not entry.condition for entry in known.state
    ):
        result = _with_gradient(result)
    result = after_layer(canonical, instance, args, result)
    packed = args[0] if args and is_packed(args[0]) else None
    if packed is not None:
        states = (
            result.items[1] if isinstance(result, Sequence) and result.items else Unknown("states of a layer")
        )
        return Sequence("tuple", [packed, states])
    return result


def _computed(result: Value) -> Value:
    """What a layer with parameters or buffers gives in traced code: no number of it is known, whatever it was given."""
    if isinstance(result, Tensor) and result.origin in ("constant", "literal"):
        return replace(result, origin="fresh")
    if isinstance(result, Sequence) and result.kind == "tuple" and result.items is not None:
        result.items = [_computed(item) for item in result.items]
    return result


def _with_gradient(result: Value) -> Value:
    """What a layer with parameters gives: a tensor, or a tuple of such."""
    if isinstance(result, Tensor):
        return replace(result, requires_grad=True)
    if isinstance(result, Sequence) and result.kind == "tuple" and result.items is not None:
        result.items = [_with_gradient(item) for item in result.items]
    return result


def _rank_of_loss(arguments: Mapping[str, Value]) -> int | None:
    """A loss is one number, where it is not asked for each element's."""
    if "size_average" in arguments or "reduce" in arguments:
        return None
    reduction = arguments.get("reduction", Const("mean"))
    return 0 if isinstance(reduction, Const) and reduction.value in ("mean", "sum", "batchmean") else None


def is_packed(value: Value) -> bool:
    """Whether `value` is a PackedSequence, which recurrent layers give back as one."""
    return (
        isinstance(value, Instance)
        and isinstance(value.cls, Named)
        and value.cls.name.endswith("rnn.PackedSequence")
    )


def _numbers_held(name: str, arguments: Mapping[str, Value]) -> list[Value]:
    """The numbers of NumPy's that a layer was made with and that its forward asks about; sizes of weights it does not."""
    kind = name.rpartition(".")[2]
    asked = {key for key in arguments if key in _ASKED_ABOUT}
    if "kernel_size" in arguments and "Pool" in kind:
        asked.add("kernel_size")
    given = [
        item
        for key in sorted(asked)
        if isinstance(value := arguments[key], Value)
        for item in ((value.items or []) if isinstance(value, Sequence) else [value])
    ]
    return [value for value in given if isinstance(value, Array) and value.held]


# Measured on torch 2.13, in strict mode.
_ASKED_ABOUT = frozenset(
    {
        "stride", "padding", "dilation", "groups", "num_groups", "normalized_shape", "eps", "momentum", "p", "negative_slope", "alpha",
        "dim", "upscale_factor", "output_size", "min_val", "max_val",
    }
)  # fmt: skip


def _run_sequential(
    machine: Machine, instance: Instance, args: list[Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    items = instance.attributes.get("__items__")
    if not isinstance(items, Sequence) or not args:
        return Unknown("a Sequential whose modules are not known")
    value = args[0]
    if items.items is not None:
        for item in items.items:
            value = call_value(machine, item, [value], {}, frame, node)
        return value
    element = element_of(items)
    return (
        join(value, call_value(machine, element, [value], {}, frame, node))
        if items.element is not None
        else Unknown("modules not known")
    )
