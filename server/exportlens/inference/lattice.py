"""The order of abstract values: what two paths that meet can still be sure of."""

from __future__ import annotations

from dataclasses import replace

from exportlens.inference.values import (
    Array,
    Choice,
    Const,
    Instance,
    Mapping_,
    Named,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    is_filled,
)

_MAX_OPTIONS = 5


def join(left: Value, right: Value) -> Value:
    """The least value that covers both. Commutative up to the order of a Choice's options."""
    if left is right or left == right:
        return left
    if isinstance(left, Unknown):
        return left
    if isinstance(right, Unknown):
        return right
    if isinstance(left, Choice) or isinstance(right, Choice):
        return _join_options(left, right)
    if type(left) is type(right):
        merged = _join_alike(left, right)
        if merged is not None:
            return merged
    return _join_options(left, right)


def _join_alike(left: Value, right: Value) -> Value | None:
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        if (left.origin == "constant") != (right.origin == "constant"):
            return None
        return replace(
            left,
            origin=left.origin if left.origin == right.origin else "fresh",
            name=left.name if left.name == right.name else "",
            dtype=left.dtype if left.dtype == right.dtype else None,
            rank=left.rank if left.rank == right.rank else None,
            unbacked=left.unbacked and right.unbacked,
            root=left.root if left.root == right.root else 0,
            requires_grad=left.requires_grad if left.requires_grad == right.requires_grad else None,
            open_dim=left.open_dim if left.open_dim == right.open_dim else None,
            dims=left.dims if left.dims == right.dims else None,
            converted=left.converted and right.converted,
            single=left.single if left.single == right.single else None,
            recast=left.recast and right.recast,
        )
    if isinstance(left, Static) and isinstance(right, Static):
        return Static(left.type if left.type == right.type else "")
    if isinstance(left, Shape) and isinstance(right, Shape):
        return replace(
            left,
            unbacked=left.unbacked and right.unbacked,
            input=None,
            dim=None,
            type=left.type if left.type == right.type else "int",
        )
    if isinstance(left, TensorScalar) and isinstance(right, TensorScalar):
        return replace(left, type=left.type if left.type == right.type else "")
    if isinstance(left, Array) and isinstance(right, Array) and left.traced == right.traced:
        return Array(left.traced, held=left.held and right.held)
    if (
        isinstance(left, Sequence)
        and isinstance(right, Sequence)
        and left.kind == right.kind
        and left.type_name == right.type_name
    ):
        if left.items is not None and right.items is not None and len(left.items) == len(right.items):
            return Sequence(
                left.kind,
                [join(a, b) for a, b in zip(left.items, right.items, strict=True)],
                None,
                left.type_name,
                left.fields,
            )
        return Sequence(
            left.kind,
            None,
            join(element_of(left), element_of(right)),
            left.type_name,
            filled=is_filled(left) and is_filled(right),
        )
    if isinstance(left, Mapping_) and isinstance(right, Mapping_) and left.kind == right.kind:
        items = {
            key: join(left.items[key], right.items[key])
            if key in left.items and key in right.items
            else left.items.get(key, right.items.get(key, Unknown()))
            for key in {**left.items, **right.items}
        }
        rest = (
            left.rest
            if right.rest is None
            else right.rest
            if left.rest is None
            else join(left.rest, right.rest)
        )
        return Mapping_(items, rest, left.kind, left.factory)
    return None


def _join_options(left: Value, right: Value) -> Value:
    merged: list[Value] = []
    for value in (*_flat(left), *_flat(right)):
        for index, known in enumerate(merged):
            if known is value or known == value:
                break
            if type(known) is type(value) and not isinstance(value, Const):
                together = _join_alike(known, value)
                if together is not None:
                    merged[index] = together
                    break
        else:
            merged.append(value)
    if len(merged) == 1:
        return merged[0]
    if len(merged) > _MAX_OPTIONS:
        return generalize(merged)
    return Choice(tuple(merged))


def _flat(value: Value) -> tuple[Value, ...]:
    return value.options if isinstance(value, Choice) else (value,)


def generalize(values: list[Value]) -> Value:
    """What many different values have in common: configuration when none of them is from data, else nothing."""
    if all(isinstance(value, (Const, Static)) for value in values):
        types = {
            type(value.value).__name__ if isinstance(value, Const) else value.type
            for value in values
            if isinstance(value, (Const, Static))
        }
        return Static(types.pop() if len(types) == 1 else "")
    return Unknown("too many possibilities")


def element_of(sequence: Sequence) -> Value:
    """A value that covers every element of `sequence`."""
    if sequence.items is None:
        return sequence.element or Unknown("elements of a sequence")
    if not sequence.items:
        return sequence.element or Unknown("element of an empty sequence")
    result = sequence.items[0]
    for item in sequence.items[1:]:
        result = join(result, item)
    return result


def distinct(items: list[Value]) -> Sequence:
    """The set of `items`. How many it has is known where each can be told from the others: two sizes may be equal."""
    kept: dict[object, Value] = {}
    for item in items:
        if isinstance(item, Const):
            kept.setdefault((item.value,), item)
        elif isinstance(item, Named):
            kept.setdefault(item.name, item)
        elif len(items) > 1:
            return Sequence("set", None, element_of(Sequence("set", items)))
    return Sequence("set", list(kept.values()) if len(items) != 1 else items)


def alike(cover: Value) -> Value:
    """What stands for each of several items: one of the objects, where all are of one class, or a number from data."""
    if not isinstance(cover, Choice):
        return cover
    first = cover.options[0]
    if isinstance(first, Instance) and all(
        isinstance(option, Instance) and option.cls is first.cls for option in cover.options
    ):
        return first
    types = [_number_type(option) for option in cover.options]
    if "" not in types and any(isinstance(option, TensorScalar) for option in cover.options):
        # Data gives some of them.
        return TensorScalar(types[0] if len(set(types)) == 1 else "")
    return Unknown("one of several kinds")


def _number_type(value: Value) -> str:
    """The type of the number of Python that `value` is; "" where it may be none."""
    if isinstance(value, Const):
        return type(value.value).__name__ if type(value.value) in (int, float, bool) else ""
    if isinstance(value, Static):
        return value.type if value.type in ("int", "float", "bool") else ""
    return value.type if isinstance(value, (TensorScalar, Shape)) else ""
