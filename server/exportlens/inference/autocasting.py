"""Where torch.autocast gives tensors a dtype that strict tracing takes them not to have.

Operators are those that torch.autocast runs in lower precision on the CPU; measured on torch 2.13.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.machine import Machine
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import (
    Choice,
    Const,
    Instance,
    Named,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Value,
)

_OF_ANY_DEVICE = frozenset({"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"})
_OF_THE_CPU = frozenset({"torch.cpu.amp.autocast", "torch.cpu.amp.autocast_mode.autocast"})
_LOWERED = frozenset(
    {"linear", "Linear", "bmm", "mm", "matmul", "addmm", "addbmm", "baddbmm", "einsum", "scaled_dot_product_attention"}
    | {f"conv{n}d" for n in (1, 2, 3)}
    | {f"Conv{n}d" for n in (1, 2, 3)}
    | {f"conv_transpose{n}d" for n in (1, 2, 3)}
    | {f"ConvTranspose{n}d" for n in (1, 2, 3)}
)  # fmt: skip
# These give what they are given in its own dtype, in lower precision as well; so do operators that go element by element.
_KEEPING = frozenset(
    {"sum", "mean", "amax", "amin", "max", "min", "softmax", "log_softmax", "Softmax", "LogSoftmax", "layer_norm", "LayerNorm", "dropout",
     "Dropout", "flatten", "Flatten", "reshape", "contiguous", "clone", "detach", "cat", "stack", "std", "var", "ReLU", "GELU", "SiLU",
     "Tanh", "Sigmoid", "LeakyReLU", "ELU", "Identity", "permute", "transpose"}
)  # fmt: skip


# Under this key stands whether a context switches autocast on for tensors on the CPU, or off; None where it says nothing of that.
_ON = "on"


def make_context(name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Instance | None:
    """What calling `name` makes, where that is a context of autocast."""
    if name not in _OF_ANY_DEVICE | _OF_THE_CPU:
        return None
    # torch.cpu.amp.autocast takes no device.
    first = 1 if name in _OF_ANY_DEVICE else 0
    device = kwargs.get("device_type") or (args[0] if first and args else None)
    enabled = kwargs.get("enabled") or (args[2 * first] if len(args) > 2 * first else None)
    on: bool | None = None
    if "**" not in kwargs and (not first or device == Const("cpu") or _is_device_of_tensor(node)):
        on = True if enabled in (None, Const(True)) else False if enabled == Const(False) else None
    return Instance(Named(name), arguments={_ON: Const(on)}, open=True, fingerprint=(name, on))


def _is_device_of_tensor(node: ast.AST) -> bool:
    """Whether `x.device.type` is written for the device in the call `node`."""
    if not isinstance(node, ast.Call):
        return False
    given = [key.value for key in node.keywords if key.arg == "device_type"] or node.args[:1]
    return any(
        isinstance(each, ast.Attribute)
        and each.attr == "type"
        and isinstance(each.value, ast.Attribute)
        and each.value.attr == "device"
        for each in given
    )


def entered(machine: Machine, manager: Value) -> bool:
    """Whether autocast is in force for tensors on the CPU once `manager` is entered."""
    on = manager.arguments.get(_ON) if isinstance(manager, Instance) else None
    return on.value if isinstance(on, Const) and isinstance(on.value, bool) else machine.autocast


def may_cast(context: Value | None) -> bool:
    """Whether `context` may be one of autocast that is switched on for some device."""
    if isinstance(context, Choice):
        return any(map(may_cast, context.options))
    return (
        isinstance(context, Instance) and _ON in context.arguments and context.arguments[_ON] != Const(False)
    )


def recast(machine: Machine, op: knowledge.Op, name: str, given: list[Value], made: Value) -> Value:
    """`made`, the result of the operator or layer `name`, which says whether autocast gave it another dtype."""
    if not isinstance(made, Tensor) or dtype_family(made.dtype) not in (None, "float"):
        return made
    tensors = [each for each in given if isinstance(each, Tensor)]
    if not tensors:
        return made
    short = name.rpartition(".")[2]
    if machine.autocast and short in _LOWERED:
        fits = all(
            each.dtype != "float64" and dtype_family(each.dtype) in (None, "float") for each in tensors
        )
        return replace(made, recast=fits)
    keeps = op.pointwise or bool(op.aliases) or short in _KEEPING
    return replace(made, recast=keeps and _all_recast(given))


def recast_by_operator(machine: Machine, left: Value, right: Value, made: Value, *, matmul: bool) -> Value:
    """The same of the result of an operator of Python's."""
    if not isinstance(made, Tensor) or dtype_family(made.dtype) not in (None, "float"):
        return made
    if matmul and machine.autocast:
        both = isinstance(left, Tensor) and isinstance(right, Tensor)
        return replace(made, recast=both)
    return replace(made, recast=_all_recast([left, right]))


def _all_recast(given: list[Value]) -> bool:
    """Whether all tensors of floats among `given` were recast: beside one of single precision the result is of that."""
    tensors = [
        each for each in given if isinstance(each, Tensor) and dtype_family(each.dtype) in (None, "float")
    ]
    plain = (Tensor, Const, Static, Shape, TensorScalar, Named)
    if any(not isinstance(each, plain) for each in given):
        return False
    return bool(tensors) and all(each.recast for each in tensors)
