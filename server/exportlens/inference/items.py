"""Items: read from and written to containers and tensors."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.classes import members_of
from exportlens.inference.kept_containers import notice_item
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_calls import item_of_array
from exportlens.inference.numpy_reads import notice_held, notice_numpy
from exportlens.inference.places import (
    Conversion,
    ItemRead,
    ItemWrite,
    Mutation,
)
from exportlens.inference.tensors import index_tensor
from exportlens.inference.values import (
    Array,
    Choice,
    ClassValue,
    Const,
    Instance,
    Mapping_,
    Named,
    Sequence,
    Shape,
    Slice,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    from_data,
)


def get_item(machine: Machine, owner: Value, key: Value, frame: Frame, node: ast.AST) -> Value:
    """`owner[key]`."""
    if isinstance(owner, Tensor) and isinstance(key, Const) and isinstance(key.value, str):
        return Unknown("no tensor has names for its parts: this is something else")
    if isinstance(owner, Tensor):
        value = index_tensor(owner, key)
        _notice_held_key(machine, owner, key, frame, node)
        if machine.emits(ItemRead):
            machine.notice(ItemRead(machine.site(frame), node, owner, key, value))
        return value
    if isinstance(owner, Sequence):
        return _item_of_sequence(machine, owner, key, frame, node)
    if isinstance(owner, Mapping_):
        return _item_of_mapping(machine, owner, key, frame, node)
    if isinstance(owner, Choice):
        return _item_of_choice(machine, owner, key, frame, node)
    if isinstance(owner, Instance):
        items = owner.attributes.get("__items__")
        if items is not None:
            return get_item(machine, items, key, frame, node)
        if isinstance(owner.cls, ClassValue):
            from exportlens.inference.construction import call_method

            made = call_method(machine, owner, "__getitem__", [key], frame, node)
            if made is not None:
                return made
        return Unknown("an item of an object")
    if isinstance(owner, Const) and isinstance(owner.value, str):
        if (
            isinstance(key, Const)
            and isinstance(key.value, int)
            and -len(owner.value) <= key.value < len(owner.value)
        ):
            return Const(owner.value[key.value])
        return Static("str")
    if isinstance(owner, Array):
        if owner.traced and isinstance(key, TensorScalar) and machine.emits(Conversion):
            machine.notice(Conversion(machine.site(frame), node, key, "index", "array"))
        return item_of_array(owner, key)
    if isinstance(owner, Static):
        return Static()
    if isinstance(owner, ClassValue) and members_of(owner):
        named = {member.name.rpartition(".")[2]: member for member in members_of(owner)}
        known = named.get(key.value) if isinstance(key, Const) else None
        return known if known is not None else Unknown("a member of an enumeration")
    if isinstance(owner, (Named, ClassValue)):
        return owner
    if not isinstance(owner, Unknown):
        return Unknown("an item of something unknown")
    if machine.tracing and not owner.outside and _indexes_tensors(key):
        return index_tensor(Tensor(), key)
    given = "part" if owner.given and isinstance(key, Const) else ""
    return Unknown("an item of something unknown", made=owner.made, outside=owner.outside, given=given)


def _indexes_tensors(key: Value) -> bool:
    """Whether only a tensor (or an array) takes `key`: a mask, several indices, or several dimensions at once."""
    if isinstance(key, Sequence) and key.kind == "tuple" and key.items is None:
        return isinstance(key.element, Tensor)
    parts = (
        key.items if isinstance(key, Sequence) and key.kind == "tuple" and key.items is not None else [key]
    )
    if len(parts) > 1:
        return any(
            isinstance(part, (Slice, Tensor)) or (isinstance(part, Const) and part.value in (None, ...))
            for part in parts
        )
    return (
        isinstance(parts[0], Tensor) and (parts[0].dtype == "bool" or bool(parts[0].rank)) if parts else False
    )


def _notice_held_key(machine: Machine, owner: Tensor, key: Value, frame: Frame, node: ast.AST) -> None:
    """Note where a tensor is indexed, or cut, by NumPy data that was made before tracing."""
    for part in (key.items or []) if isinstance(key, Sequence) else [key]:
        for bound in (part.lower, part.upper, part.step) if isinstance(part, Slice) else (part,):
            if isinstance(bound, Array):
                notice_held(machine, owner, bound, frame, node)


def _index_place(machine: Machine, owner: Value, key: Value, to: str, frame: Frame, node: ast.AST) -> None:
    if from_data(key) and machine.emits(Conversion):
        machine.notice(
            Conversion(machine.site(frame), node, key, to, variables=frame.visible(), keys=_keys(owner))
        )
    notice_numpy(machine, key, to, frame, node)


def _keys(owner: Value) -> tuple[int | str, ...] | None:
    """The keys of all items that a list or dict has now, where they are known."""
    if isinstance(owner, Sequence) and owner.items is not None and owner.kind in ("list", "tuple"):
        return tuple(range(len(owner.items)))
    if isinstance(owner, Mapping_) and owner.rest is None and owner.factory is None and owner.kind == "dict":
        return tuple(owner.items) if all(type(each) in (int, str) for each in owner.items) else None
    return None


def _item_of_sequence(machine: Machine, owner: Sequence, key: Value, frame: Frame, node: ast.AST) -> Value:
    if isinstance(key, Const) and isinstance(key.value, int):
        if owner.items is not None:
            if -len(owner.items) <= key.value < len(owner.items):
                return owner.items[key.value]
            return Unknown("an index past the end")
        if key.value == 0 and owner.first is not None:
            return owner.first
        if owner.type_name == "torch.Size" and isinstance(owner.element, Shape):
            start = owner.first.dim if isinstance(owner.first, Shape) else 0
            counted = start is not None and (not start or key.value > 0)
            return replace(owner.element, dim=start + key.value if counted and start is not None else None)
        return element_of(owner)
    if isinstance(key, Slice):
        bounds = [key.lower, key.upper, key.step]
        for bound in bounds:
            if bound is not None:
                _index_place(machine, owner, bound, "index", frame, node)
        if owner.items is not None and all(
            bound is None or (isinstance(bound, Const) and isinstance(bound.value, (int, type(None))))
            for bound in bounds
        ):
            cut = slice(*(bound.value if isinstance(bound, Const) else None for bound in bounds))
            try:
                return Sequence(owner.kind, owner.items[cut], None, owner.type_name)
            except ValueError:
                return Unknown("a slice with step 0")
        first = owner.first
        if isinstance(owner.element, Shape) and (key.lower is not None or key.step is not None):
            plain = isinstance(key.lower, Const) and isinstance(key.lower.value, int) and key.step is None
            first = replace(
                owner.element, dim=key.lower.value if plain and isinstance(key.lower, Const) else None
            )
        return Sequence(owner.kind, None, element_of(owner), owner.type_name, first=first)
    _index_place(machine, owner, key, "index", frame, node)
    return element_of(owner)


def _item_of_mapping(machine: Machine, owner: Mapping_, key: Value, frame: Frame, node: ast.AST) -> Value:
    if isinstance(key, Const):
        if key.value in owner.items:
            return owner.items[key.value]
        if (
            owner.kind == "record"
            and isinstance(key.value, int)
            and -len(owner.items) <= key.value < len(owner.items)
        ):
            return list(owner.items.values())[key.value]
        if owner.factory is not None and owner.rest is None:
            made = _made_by_factory(machine, owner.factory, frame, node)
            machine.journal.write(owner.items, key.value, made)
            return made
        return owner.rest if owner.rest is not None else Unknown(f"no key {key.value!r}")
    if isinstance(key, Static) and key.spells:
        key = TensorScalar("str", key.spells)
    _index_place(machine, owner, key, "key", frame, node)
    if owner.factory is not None and owner.rest is None:
        machine.journal.write(owner, "rest", _made_by_factory(machine, owner.factory, frame, node))
    values = [*owner.items.values(), *([owner.rest] if owner.rest is not None else [])]
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return result if result is not None else Unknown("an item of an empty dict")


def _made_by_factory(machine: Machine, factory: Value, frame: Frame, node: ast.AST) -> Value:
    from exportlens.inference.calls import call_value

    return call_value(machine, factory, [], {}, frame, node)


def _item_of_choice(machine: Machine, owner: Choice, key: Value, frame: Frame, node: ast.AST) -> Value:
    candidates = [option for option in owner.options if not isinstance(option, Const)]
    result: Value | None = None
    with machine.doubting(len(candidates) > 1):
        for option in candidates:
            value = get_item(machine, option, key, frame, node)
            result = value if result is None else join(result, value)
    return result if result is not None else Unknown("an item of a constant")


def delete_item(machine: Machine, owner: Value, key: Value) -> None:
    """`del owner[key]`."""
    if isinstance(owner, Instance):
        delete_item(machine, owner.attributes.get("__items__", Unknown("items")), key)
    elif isinstance(owner, Sequence) and owner.items is not None:
        items_ = list(owner.items)
        if isinstance(key, Const) and type(key.value) is int and -len(items_) <= key.value < len(items_):
            del items_[key.value]
            machine.journal.write(owner, "items", items_)
        else:
            machine.journal.write(owner, "element", element_of(owner))
            machine.journal.write(owner, "items", None)
    elif isinstance(owner, Mapping_):
        if isinstance(key, Const):
            machine.journal.remove(owner.items, key.value)
        elif owner.items:
            # Which key is gone is not known: each may be.
            cover = element_of(Sequence("list", list(owner.items.values())))
            machine.journal.write(owner, "rest", cover if owner.rest is None else join(owner.rest, cover))
            machine.journal.write(owner, "items", {})


def set_item(
    machine: Machine,
    owner: Value,
    key: Value,
    value: Value,
    frame: Frame,
    node: ast.AST,
    augmented: bool = False,
) -> None:
    """`owner[key] = value`."""
    if isinstance(owner, Tensor):
        _notice_held_key(machine, owner, key, frame, node)
        if machine.emits(ItemWrite):
            machine.notice(ItemWrite(machine.site(frame), node, owner, key, value, augmented))
        if machine.emits(Mutation):
            machine.notice(Mutation(machine.site(frame), node, owner, "[]", (key, value), frame.receiver))
        return
    if machine.emits(ItemWrite) and isinstance(owner, (Sequence, Mapping_, Array)):
        machine.notice(ItemWrite(machine.site(frame), node, owner, key, value, augmented))
    if isinstance(owner, (Sequence, Mapping_)):
        notice_item(machine, owner, value, frame, node)
    if isinstance(owner, Array) and not owner.traced and machine.emits(Conversion):
        parts = key.items if isinstance(key, Sequence) and key.items is not None else [key]
        for part in (*parts, value):
            if isinstance(part, Tensor) and from_data(part):
                machine.notice(Conversion(machine.site(frame), node, part, "numpy"))
    if isinstance(owner, Instance):
        items = owner.attributes.get("__items__")
        if items is not None:
            set_item(machine, items, key, value, frame, node)
        elif isinstance(owner.cls, ClassValue):
            from exportlens.inference.construction import call_method

            call_method(machine, owner, "__setitem__", [key, value], frame, node)
    elif isinstance(owner, Sequence):
        if (
            isinstance(key, Const)
            and isinstance(key.value, int)
            and owner.items is not None
            and -len(owner.items) <= key.value < len(owner.items)
        ):
            items_ = list(owner.items)
            items_[key.value] = value
            machine.journal.write(owner, "items", items_)
        else:
            _index_place(machine, owner, key, "index", frame, node)
            given = element_of(value) if isinstance(key, Slice) and isinstance(value, Sequence) else value
            cover = join(element_of(owner), given) if owner.items or owner.element is not None else given
            machine.journal.write(owner, "element", cover)
            machine.journal.write(owner, "items", None)
    elif isinstance(owner, Mapping_):
        if isinstance(key, Const):
            machine.journal.write(owner.items, key.value, value)
        else:
            _index_place(machine, owner, key, "key", frame, node)
            machine.journal.write(owner, "rest", value if owner.rest is None else join(owner.rest, value))
