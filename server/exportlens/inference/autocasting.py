"""Where torch.autocast gives tensors a dtype that strict tracing takes them not to have.

Operators are those that torch.autocast runs in lower precision on the CPU; measured on torch 2.13.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.machine import Machine
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Const, Named, Shape, Static, Tensor, TensorScalar, Value

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


def of_cpu(name: str, device: Value | None, node: ast.expr | None, enabled: Value | None) -> bool | None:
    """Whether the context `name` switches autocast on for tensors on the CPU; False where it switches it off, None where it says
    nothing of that. `node` is what is written for the device."""
    if name not in _OF_ANY_DEVICE | _OF_THE_CPU:
        return None
    device_of_tensor = isinstance(node, ast.Attribute) and (
        node.attr == "type" and isinstance(node.value, ast.Attribute) and node.value.attr == "device"
    )
    if name in _OF_ANY_DEVICE and device != Const("cpu") and not device_of_tensor:
        return None
    if enabled is None or enabled == Const(True):
        return True
    return False if enabled == Const(False) else None


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
