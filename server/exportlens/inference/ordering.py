"""What Python puts in order: `sorted`, `list.sort`, `max` and `min` with a key, and heaps, all of which compare."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeGuard

from exportlens.inference.iteration import elements_of
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_reads import notice_numpy
from exportlens.inference.places import Truth
from exportlens.inference.values import (
    Bound,
    Choice,
    Const,
    Function,
    Named,
    Native,
    Partial,
    Sequence,
    Shape,
    Static,
    TensorScalar,
    Unknown,
    Value,
    from_data,
    is_filled,
    options,
)

Run = Callable[[Machine, list[Value], dict[str, Value], Frame, ast.AST], Value]

# How many items a `key=` is followed for.
_MOST_KEYS = 2
_NUMBERS = ("int", "float", "bool")


def compared_by_data(values: list[Value]) -> Value | None:
    """What of the values comes from data, where putting them in order certainly compares it: one of them, or of
    tuples the first item by which they can be told apart. None where data decides nothing."""
    if len(values) < 2:
        return None
    if all(map(_is_listing, values)):
        return _column_by_data([value.items for value in values if _is_listing(value) and value.items])
    found = next((value for value in values if _is_data(value)), None)
    # Beside what is not known there may be objects that compare in their own way.
    return found if found is not None and all(map(_is_data_or_number, values)) else None


def _is_listing(value: Value) -> TypeGuard[Sequence]:
    return isinstance(value, Sequence) and value.kind in ("tuple", "list") and bool(value.items)


def _column_by_data(rows: list[list[Value]]) -> Value | None:
    for column in zip(*rows, strict=False):
        found = compared_by_data(list(column))
        if found is not None:
            return found
        if not all(isinstance(each, Const) and each == column[0] for each in column):
            return None
    return None


def _is_data(value: Value) -> bool:
    return all(map(from_data, options(value)))


def _is_data_or_number(value: Value) -> bool:
    return all(
        from_data(each)
        or isinstance(each, Shape)
        or (isinstance(each, Static) and each.type in _NUMBERS)
        or (isinstance(each, Const) and isinstance(each.value, (int, float)))
        for each in options(value)
    )


def notice_order(machine: Machine, values: list[Value], frame: Frame, node: ast.AST) -> None:
    """Note where Python compares the values and data decides."""
    found = compared_by_data(values)
    if found is not None and machine.emits(Truth):
        machine.notice(Truth(machine.site(frame), node, found, "sort", node, frame.visible()))


def notice_keys(
    machine: Machine, items: list[Value], kwargs: Mapping[str, Value], frame: Frame, node: ast.AST
) -> None:
    """Follow `key=` of `sorted`, `max` or `min`, and note where what it returns can only be compared by its data."""
    from exportlens.inference.calls import call_value

    key = kwargs.get("key")
    if not isinstance(key, (Function, Bound, Native, Partial, Named)) or len(items) < 2:
        return
    # Of `key=float` only the order is of interest: it is called nowhere in the text.
    quiet = isinstance(key, Named)
    machine.quiet += quiet
    try:
        results = [call_value(machine, key, [item], {}, frame, node) for item in items[:_MOST_KEYS]]
    finally:
        machine.quiet -= quiet
    notice_order(machine, [_without_none(each) for each in results], frame, node)


def _without_none(value: Value) -> Value:
    """A key that may be None as far as is known: Python puts None in no order."""
    rest = tuple(each for each in options(value) if each != Const(None))
    if not rest or not isinstance(value, Choice):
        return value
    return rest[0] if len(rest) == 1 else Choice(rest)


def run_sorted(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`sorted(items, key=None)`."""
    notice_numpy(machine, args[0], "sorted", frame, node)
    items, element = elements_of(machine, args[0], frame, node)
    compared = items if items is not None else [element, element]
    if _has_key(kwargs):
        notice_keys(machine, compared, kwargs, frame, node)
    elif items is not None or not _is_row(element):
        notice_order(machine, compared, frame, node)
    known = [item for item in items or () if isinstance(item, Const)]
    if items is not None and len(known) == len(items) and not kwargs:
        try:
            return Sequence("list", [*sorted(known, key=lambda item: item.value)])
        except TypeError:
            return Unknown("a sort that raises")
    return Sequence("list", None, element, filled=is_filled(args[0]))


def _has_key(kwargs: Mapping[str, Value]) -> bool:
    return kwargs.get("key", Const(None)) != Const(None)


def _is_row(element: Value) -> bool:
    """Whether there may be one element alone: of tensors that are gone through nobody knows."""
    return not isinstance(element, (TensorScalar, Sequence))


def notice_sort(
    machine: Machine, owner: Sequence, kwargs: Mapping[str, Value], frame: Frame, node: ast.AST
) -> None:
    """`list.sort(key=None)`."""
    compared = owner.items if owner.items is not None else [element_of(owner)] * 2
    if _has_key(kwargs):
        notice_keys(machine, compared, kwargs, frame, node)
    elif owner.items is not None or not _is_row(element_of(owner)):
        notice_order(machine, compared, frame, node)


def _heap_push(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`heapq.heappush(heap, item)`."""
    del kwargs
    heap = args[0] if len(args) == 2 else None
    if not isinstance(heap, Sequence):
        return Unknown("heapq.heappush()")
    held = heap.items if heap.items is not None else [element_of(heap)]
    notice_order(machine, [*held, args[1]], frame, node)
    # Where in the list it comes nobody knows.
    cover = join(element_of(heap), args[1]) if held else args[1]
    machine.journal.write(heap, "items", [cover] * (len(held) + 1) if heap.items is not None else None)
    machine.journal.write(heap, "element", cover)
    return Const(None)


def _heap_pop(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`heapq.heappop(heap)`: one of the items."""
    del kwargs, frame, node
    heap = args[0] if args else None
    if not isinstance(heap, Sequence):
        return Unknown("heapq.heappop()")
    cover = element_of(heap)
    if heap.items is not None:
        machine.journal.write(heap, "items", [cover] * (len(heap.items) - 1))
    return cover


def _heapify(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`heapq.heapify(items)`."""
    del kwargs
    if args and isinstance(args[0], Sequence):
        notice_sort(machine, args[0], {}, frame, node)
        if args[0].items:
            machine.journal.write(args[0], "items", [element_of(args[0])] * len(args[0].items))
    return Const(None)


def _heap_extremes(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`heapq.nlargest(n, items, key=None)` and `nsmallest`."""
    if len(args) < 2:
        return Unknown("a function of heapq")
    ordered = run_sorted(machine, args[1:2], kwargs, frame, node)
    return Sequence("list", None, element_of(ordered)) if isinstance(ordered, Sequence) else ordered


def _item_getter(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`operator.itemgetter(key)`: the function that takes this item of what it is given."""
    del kwargs, frame, node, machine
    keys = list(args)

    def take(m: Machine, a: list[Value], k: dict[str, Value], f: Frame, n: ast.AST) -> Value:
        from exportlens.inference.items import get_item

        del k
        if not a or not keys:
            return Unknown("itemgetter()")
        taken = [get_item(m, a[0], key, f, n) for key in keys]
        return taken[0] if len(taken) == 1 else Sequence("tuple", taken)

    return Native("operator.itemgetter", take)


ORDERING: dict[str, Run] = {
    "builtins.sorted": run_sorted,
    "heapq.heapify": _heapify,
    "heapq.heappop": _heap_pop,
    "heapq.heappush": _heap_push,
    "heapq.nlargest": _heap_extremes,
    "heapq.nsmallest": _heap_extremes,
    "operator.itemgetter": _item_getter,
}
