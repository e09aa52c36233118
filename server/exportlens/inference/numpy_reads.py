"""Where Python needs to know a number of NumPy's while tracing."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.machine import Frame, Machine
from exportlens.inference.places import NumpyRead
from exportlens.inference.values import Array, Sequence, Tensor, Value, from_data, is_numpy


def notice_numpy(machine: Machine, value: Value, use: str, frame: Frame, node: ast.AST) -> None:
    """Notices that `value` is read for `use` (see NumpyRead), if it certainly is NumPy's and no tensor's."""
    if is_numpy(value) and machine.emits(NumpyRead):
        machine.notice(NumpyRead(machine.site(frame), node, value, use))


def notice_held(machine: Machine, tensor: Value, value: Value, frame: Frame, node: ast.AST) -> None:
    """Notices that a traced tensor is computed with what the model, or its file, holds as NumPy data, or one of no dimensions
    with a float that NumPy made while tracing."""
    if not (isinstance(value, Array) and isinstance(tensor, Tensor) and from_data(tensor)):
        return
    if value.held:
        notice_numpy(machine, value, "operand", frame, node)
    # Of two tensors of no dimensions, the wider type is the result's; beside a number it is the tensor's.
    elif isinstance(node, ast.BinOp) and _widens(tensor, value):
        notice_numpy(machine, value, "promoted", frame, node)


def _widens(tensor: Tensor, number: Array) -> bool:
    own = tensor.rank == 0 and tensor.origin == "fresh" and tensor.dtype != "float64"
    return own and number.rank == 0 and number.dtype == "float64"


def notice_made_of_held(machine: Machine, source: Value, frame: Frame, node: ast.AST) -> None:
    """Notices that a tensor is made of what the model, or its file, holds as NumPy data."""
    for value in held_in(source):
        notice_numpy(machine, value, "operand", frame, node)
        return


def held_in(value: Value) -> list[Array]:
    """The NumPy data held before tracing that `value` is, or that stands in the list `value`."""
    if isinstance(value, Sequence):
        items = value.items if value.items is not None else [value.element] if value.element else []
        return [held for item in items for held in held_in(item)]
    return [value] if isinstance(value, Array) and value.held else []


def number_held(value: Array, kind: str = "") -> Array:
    """The Python number ("int" or "float") made of NumPy data that the model, or its file, holds: strict tracing knows its value no better."""
    return replace(value, dtype=f"{kind}64" if kind else value.dtype, rank=0, unbacked=False, plain=True)
