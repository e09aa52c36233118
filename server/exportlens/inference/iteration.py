"""Iteration: what a `for`, an unpacking or a comprehension gets from a value."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.classes import members_of
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_reads import notice_numpy
from exportlens.inference.places import Conversion, Iteration
from exportlens.inference.tensors import index_tensor
from exportlens.inference.values import (
    Array,
    Choice,
    ClassValue,
    Const,
    Instance,
    Mapping_,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
)

_MAX_ITEMS = 64


def elements_of(
    machine: Machine,
    value: Value,
    frame: Frame,
    node: ast.AST | None,
    *,
    expected: int | None = None,
    context: str = "unpack",
) -> tuple[list[Value] | None, Value]:
    """The items that iterating `value` gives, when their number is known, and a value that covers each of them.

    `expected` is the number that an unpacking asks for. Notes an Iteration place for rules.
    """
    if node is not None and machine.emits(Iteration):
        declared = frame.visible() if isinstance(value, Tensor) and (value.dims or value.unbacked) else {}
        machine.notice(Iteration(machine.site(frame), node, value, context, declared))
    if isinstance(value, Sequence):
        if value.items is not None:
            return list(value.items), element_of(value) if value.items else Unknown(
                "element of an empty sequence"
            )
        element = element_of(value)
        if expected and value.type_name == "torch.Size" and isinstance(element, Shape):
            start = value.first.dim if isinstance(value.first, Shape) else 0
            sizes: list[Value] = [
                replace(element, dim=None if start is None else start + index) for index in range(expected)
            ]
            return [value.first or sizes[0], *sizes[1:]], element
        if expected and value.first is not None:
            return [value.first, *[element] * (expected - 1)], element
        return ([element] * expected if expected is not None else None), element
    if isinstance(value, ClassValue) and members_of(value):
        members: list[Value] = [*members_of(value)]
        return members, _cover(members)
    if isinstance(value, Mapping_):
        if value.rest is None:
            keys: list[Value] = [Const(key) for key in value.items]
            return keys, _cover(keys)
        return None, Static("str")
    if isinstance(value, Tensor):
        row = index_tensor(value, Const(0))
        if _is_open_in_front(value) and node is not None and machine.emits(Conversion):
            size = Shape(True, origin=value.name or "a tensor")
            machine.notice(Conversion(machine.site(frame), node, size, "range", variables=frame.visible()))
        if expected is not None and expected > 1 and isinstance(row, Tensor):
            # They are told apart, and are views of one memory, whether that had a name before or not.
            root = row.root or machine.new_root()
            return [replace(row, root=root) for _ in range(expected)], row
        return ([row] * expected if expected is not None else None), row
    if isinstance(value, Array):
        if value.unbacked and node is not None:
            notice_numpy(machine, value, "loop", frame, node)
        if value.unbacked and value.traced and node is not None and machine.emits(Conversion):
            count = Shape(True, origin="a NumPy array")
            machine.notice(Conversion(machine.site(frame), node, count, "range"))
        return ([value] * expected if expected is not None else None), value
    if isinstance(value, Const) and isinstance(value.value, str):
        if len(value.value) <= _MAX_ITEMS:
            letters: list[Value] = [Const(letter) for letter in value.value]
            return letters, _cover(letters)
        return None, Static("str")
    if isinstance(value, Instance):
        return _elements_of_instance(machine, value, frame, node, expected)
    if isinstance(value, Choice):
        return _elements_of_choice(machine, value, frame, expected)
    if isinstance(value, Static):
        return None, Static()
    if isinstance(value, TensorScalar):
        return None, value
    rest = Unknown("an element of something unknown")
    if isinstance(value, Unknown):
        rest = replace(rest, made=value.made, outside=value.outside, given="part" if value.given else "")
    known = expected is not None and (rest.made or rest.given)
    return ([rest] * (expected or 0) if known else None), rest


def _is_open_in_front(tensor: Tensor) -> bool:
    """Whether tensor data decides how many rows there are to go through."""
    if not tensor.unbacked or tensor.rank == 0:
        return False
    return tensor.open_dim == 0 or (tensor.open_dim is None and tensor.rank == 1)


def _cover(values: list[Value]) -> Value:
    if not values:
        return Unknown("element of an empty sequence")
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result


def _elements_of_instance(
    machine: Machine, value: Instance, frame: Frame, node: ast.AST | None, expected: int | None
) -> tuple[list[Value] | None, Value]:
    items = value.attributes.get("__items__")
    if items is not None:
        return elements_of(machine, items, frame, None, expected=expected)
    if isinstance(value.cls, ClassValue):
        from exportlens.inference.construction import call_method

        made = call_method(machine, value, "__iter__", [], frame, node)
        if made is not None and made is not value:
            return elements_of(machine, made, frame, None, expected=expected)
        nexts = call_method(machine, value, "__next__", [], frame, node) if made is value else None
        if nexts is not None:
            return None, nexts
        item = call_method(machine, value, "__getitem__", [Static("int")], frame, node)
        if item is not None:
            return None, item
    return None, Unknown("an element of an object")


def _elements_of_choice(
    machine: Machine, value: Choice, frame: Frame, expected: int | None
) -> tuple[list[Value] | None, Value]:
    candidates = [
        option for option in value.options if not (isinstance(option, Const) and option.value is None)
    ]
    # What is empty gives no element: those of the others count.
    candidates = [
        option for option in candidates if not (isinstance(option, Sequence) and option.items == [])
    ] or candidates
    if expected is not None:
        fitting = [
            option
            for option in candidates
            if not (
                isinstance(option, Sequence) and option.items is not None and len(option.items) != expected
            )
        ]
        candidates = fitting or candidates
    if len(candidates) == 1:
        return elements_of(machine, candidates[0], frame, None, expected=expected)
    found = [elements_of(machine, option, frame, None, expected=expected) for option in candidates]
    if not found:
        return None, Unknown("an element of nothing")
    cover = _cover([element for _, element in found])
    first = found[0][0]
    if first is not None and all(items is not None and len(items) == len(first) for items, _ in found):
        columns = zip(*[items for items, _ in found if items is not None], strict=True)
        return [_cover(list(column)) for column in columns], cover
    return None, cover


def length_of(machine: Machine, value: Value, frame: Frame, node: ast.AST) -> Value:
    """`len(value)`."""
    if isinstance(value, Sequence):
        if value.items is not None:
            return Const(len(value.items))
        return Shape(origin="a list", whole=True) if value.filled else Static("int")
    if isinstance(value, Mapping_):
        return Const(len(value.items)) if value.rest is None else Static("int")
    if isinstance(value, ClassValue) and members_of(value):
        return Const(len(members_of(value)))
    if isinstance(value, Tensor):
        from exportlens.inference.tensors import size_of

        return size_of(value, Const(0))
    if isinstance(value, Array) and value.unbacked and value.traced:
        return Shape(True, origin="a NumPy array")
    if isinstance(value, Const) and isinstance(value.value, (str, bytes)):
        return Const(len(value.value))
    if isinstance(value, Instance):
        items = value.attributes.get("__items__")
        if items is not None:
            return length_of(machine, items, frame, node)
        if isinstance(value.cls, ClassValue):
            from exportlens.inference.construction import call_method

            made = call_method(machine, value, "__len__", [], frame, node)
            if made is not None:
                return made
    if isinstance(value, Choice):
        lengths = [
            length_of(machine, option, frame, node)
            for option in value.options
            if not (isinstance(option, Const) and option.value is None)
        ]
        return _cover(lengths)
    if isinstance(value, Unknown):
        return Unknown("the length of something unknown")
    return Static("int")
