"""Dynamic sizes: what an export call declares of its inputs' dimensions, and where the traced code decides on them.

A named Dim stands for every size of its range. What tracing decides for a part of the range only makes export stop
with "Constraints violated"; what it decides alike for all of them is fine. `Dim.AUTO` gives way and is never judged.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from exportlens.inference.machine import Frame, Machine
from exportlens.inference.places import ExportCall, ProgramCall, SizesMeet
from exportlens.inference.values import (
    NO_END,
    Bounds,
    Const,
    Function,
    Instance,
    Mapping_,
    Named,
    Native,
    Sequence,
    Shape,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
)

_DIM = "torch.export.Dim"
_PROGRAM = "torch.export.ExportedProgram"
_CREATIONS = frozenset(f"torch.{name}" for name in ("rand", "randn", "zeros", "ones", "empty"))
# torch.fx.experimental.symbolic_shapes: sizes 0 and 1 are never among those that a dynamic dimension stands for.
_SMALLEST = 2
_COMPARE: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def make_dim(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`torch.export.Dim("name", min=..., max=...)`."""
    given = dict(zip(("name",), args, strict=False)) | kwargs
    return Instance(Named(_DIM), arguments=given)


def program_of(call: ExportCall) -> Instance:
    """What an export call gives: its `module()` is a callable that knows what it was exported for."""

    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        if machine.observer.wants(ProgramCall):
            machine.notice(ProgramCall(machine.site(frame), node, call, tuple(args)))
        return Unknown("what an exported program returns")

    def module(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        return Native("an exported program", run)

    return Instance(Named(_PROGRAM), {"module": Native("ExportedProgram.module", module)}, open=True)


def sized(machine: Machine, name: str, args: list[Value], result: Value) -> Value:
    """The tensor of `torch.randn(2, 4)` with the sizes that are written there, in the code around an export call."""
    if machine.entry is not None or not isinstance(result, Tensor):
        return result
    if name in ("torch.randint", "torch.full"):
        args = [each for each in args if isinstance(each, Sequence)]
    elif name not in _CREATIONS:
        return result
    sizes = args
    if len(args) == 1 and isinstance(args[0], Sequence) and args[0].items is not None:
        sizes = args[0].items
    if sizes and all(isinstance(size, Const) and isinstance(size.value, int) for size in sizes):
        return replace(result, rank=len(sizes), dims=tuple(sizes))
    return result


def example_inputs(call: ExportCall, forward: Function) -> list[Value] | None:
    """The positional inputs of an export call as tracing sees them, with the sizes that its `dynamic_shapes` declares;
    None where they cannot be told.
    """
    inputs = call.arguments.get("args")
    if not isinstance(inputs, Sequence) or inputs.items is None:
        return None
    arguments = forward.node.args
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]][1:]
    if len(inputs.items) > len(names):
        return None
    shapes = _by_input(call.arguments.get("dynamic_shapes"), names)
    return [
        _declared(value, name, shapes.get(name)) for name, value in zip(names, inputs.items, strict=False)
    ]


def any_declared(inputs: list[Value]) -> bool:
    """Whether a size of the inputs is declared by a named Dim."""
    return any(
        isinstance(size, Shape) and size.bounds is not None
        for value in inputs
        if isinstance(value, Tensor)
        for size in value.dims or ()
    )


def _by_input(shapes: Value | None, names: list[str]) -> dict[str, Value]:
    if isinstance(shapes, Mapping_) and shapes.rest is None:
        return {key: value for key, value in shapes.items.items() if isinstance(key, str)}
    if isinstance(shapes, Sequence) and shapes.items is not None:
        return dict(zip(names, shapes.items, strict=False))
    return {}


def _declared(value: Value, name: str, spec: Value | None) -> Value:
    """One input as tracing sees it."""
    if not isinstance(value, Tensor):
        return value
    if value.rank is None:
        return Tensor("input", name, value.dtype)
    declared: dict[int, Value] = {}
    if isinstance(spec, Mapping_):
        declared = {key: dim for key, dim in spec.items.items() if isinstance(key, int)}
    elif isinstance(spec, Sequence) and spec.items is not None:
        declared = dict(enumerate(spec.items))
    dims: list[Value] = []
    for index in range(value.rank):
        bounds = _bounds(declared.get(index))
        origin = f"{name}.shape[{index}]"
        dims.append(Shape(False, name, index, origin, whole=True, bounds=bounds))
    return Tensor("input", name, value.dtype, value.rank, dims=tuple(dims))


def _bounds(dim: Value | None) -> Bounds | None:
    if not (isinstance(dim, Instance) and isinstance(dim.cls, Named) and dim.cls.name == _DIM):
        return None
    name, low, high = (dim.arguments.get(key, Const(None)) for key in ("name", "min", "max"))
    if not (isinstance(name, Const) and isinstance(low, Const) and isinstance(high, Const)):
        return None
    ends = low.value or _SMALLEST, high.value or NO_END
    if not isinstance(name.value, str) or not all(isinstance(end, int) for end in ends):
        return None
    return Bounds(name.value, max(ends[0], _SMALLEST), ends[1])


def compare_sizes(op: ast.cmpop, left: Value, right: Value) -> Value | None:
    """A comparison of a declared size with a number: a constant where the whole range agrees, else a size's truth
    that only the data's size decides. None where neither is a declared size.
    """
    if isinstance(left, Shape) and left.bounds is not None and isinstance(right, Const):
        return _decided(op, left, left.bounds, right.value, swapped=False)
    if isinstance(right, Shape) and right.bounds is not None and isinstance(left, Const):
        return _decided(op, right, right.bounds, left.value, swapped=True)
    return None


def _decided(op: ast.cmpop, size: Shape, bounds: Bounds, number: object, *, swapped: bool) -> Value | None:
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    if isinstance(op, (ast.Eq, ast.NotEq)):
        if bounds.low == bounds.high == number or not bounds.low <= number <= bounds.high:
            return Const((bounds.low == number) is isinstance(op, ast.Eq))
    elif type(op) in _COMPARE:
        run = _COMPARE[type(op)]
        ends = {run(number, end) if swapped else run(end, number) for end in (bounds.low, bounds.high)}
        if len(ends) == 1:
            return Const(ends.pop())
    else:
        return None
    return Shape(True, size.input, size.dim, size.origin, "bool", bounds=bounds)


def met(machine: Machine, left: Value, right: Value, result: Value, frame: Frame, node: ast.AST) -> Value:
    """The result of elementwise arithmetic of tensors, of which one has declared sizes."""
    if not isinstance(result, Tensor):
        return result
    for tensor, number in ((left, right), (right, left)):
        if isinstance(tensor, Tensor) and isinstance(number, (Const, Shape, TensorScalar)):
            return replace(result, dims=tensor.dims)
    if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
        return result
    if left.dims is None or right.dims is None:
        return result
    dims: list[Value] = []
    for back in range(1, max(len(left.dims), len(right.dims)) + 1):
        one = left.dims[-back] if back <= len(left.dims) else None
        other = right.dims[-back] if back <= len(right.dims) else None
        if (
            isinstance(one, Shape)
            and isinstance(other, Shape)
            and one.bounds is not None
            and other.bounds is not None
            and one.bounds.name != other.bounds.name
            and machine.emits(SizesMeet)
        ):
            machine.notice(SizesMeet(machine.site(frame), node, one, other))
        if one is None or one == Const(1):
            # A single row is repeated.
            dims.append(other or Const(1))
        else:
            dims.append(one if other in (None, Const(1), one) else Shape())
    return replace(result, dims=tuple(reversed(dims)))
