"""Methods of lists, tuples, sets, dicts and strings."""

from __future__ import annotations

import ast
import functools

from exportlens.inference.items import delete_item, get_item, set_item
from exportlens.inference.iteration import elements_of
from exportlens.inference.kept_containers import notice_method
from exportlens.inference.lattice import alike, distinct, element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.operators import fold
from exportlens.inference.ordering import notice_sort
from exportlens.inference.places import Conversion, Truth
from exportlens.inference.tensors import text_of
from exportlens.inference.values import (
    Choice,
    Const,
    Instance,
    Mapping_,
    Named,
    Sequence,
    Static,
    TensorScalar,
    Unknown,
    Value,
    from_data,
    options,
)

_MAX_ITEMS = 512


def call_container_method(
    machine: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """`owner.name(...)` for a builtin container or string."""
    if isinstance(owner, (Sequence, Mapping_)):
        notice_method(machine, owner, name, args, kwargs, frame, node)
    if isinstance(owner, Sequence):
        return _sequence_method(machine, owner, name, args, kwargs, frame, node)
    if isinstance(owner, Mapping_):
        return _mapping_method(machine, owner, name, args, kwargs, frame, node)
    if isinstance(owner, (Const, Static)) and _is_text(owner):
        return _text_method(machine, owner, name, args, kwargs, frame, node)
    if isinstance(owner, Static):
        return Static()
    return Unknown(f"the method `{name}` of {owner.describe()}")


def _is_text(owner: Const | Static) -> bool:
    return isinstance(owner.value, (str, bytes)) if isinstance(owner, Const) else owner.type == "str"


def _sequence_method(
    machine: Machine,
    owner: Sequence,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    if name == "__getitem__" and len(args) == 1:
        return get_item(machine, owner, args[0], frame, node)
    if owner.fields and name in ("_replace", "_make", "_asdict"):
        return _named_tuple_method(machine, owner, name, args, kwargs, frame, node)
    if name in ("append", "add", "appendleft") and args:
        if name == "add" and owner.items is not None and distinct([*owner.items, args[0]]).items is not None:
            machine.journal.write(owner, "items", distinct([*owner.items, args[0]]).items)
        elif name == "appendleft" and owner.items is not None and len(owner.items) < _MAX_ITEMS:
            machine.journal.write(owner, "items", [args[0], *owner.items])
        elif owner.items is not None and len(owner.items) < _MAX_ITEMS and owner.kind != "set":
            machine.journal.write(owner, "items", [*owner.items, args[0]])
        else:
            _blur(machine, owner, args[0])
        return Const(None)
    if name in ("remove", "discard") and args:
        _remove(machine, owner, args[0])
        return Const(None)
    if name == "extend" and args:
        items, element = elements_of(machine, args[0], frame, node)
        if owner.items is not None and items is not None and len(owner.items) + len(items) < _MAX_ITEMS:
            machine.journal.write(owner, "items", [*owner.items, *items])
        else:
            _blur(machine, owner, element)
        return Const(None)
    if name == "insert" and len(args) == 2:
        if owner.items is not None and isinstance(args[0], Const) and isinstance(args[0].value, int):
            items_ = list(owner.items)
            items_.insert(args[0].value, args[1])
            machine.journal.write(owner, "items", items_)
        else:
            _blur(machine, owner, args[1])
        return Const(None)
    if name in ("pop", "popleft"):
        if owner.items and (
            not args
            or (
                isinstance(args[0], Const)
                and isinstance(args[0].value, int)
                and -len(owner.items) <= args[0].value < len(owner.items)
            )
        ):
            index = 0 if name == "popleft" else args[0].value if args and isinstance(args[0], Const) else -1
            items_ = list(owner.items)
            value = items_.pop(index)
            machine.journal.write(owner, "items", items_)
            return value
        return element_of(owner)
    if name in ("copy", "union", "intersection", "difference"):
        return Sequence(
            owner.kind,
            None if owner.items is None or name != "copy" else list(owner.items),
            element_of(owner) if owner.items is None or name != "copy" else owner.element,
        )
    if name in ("reverse", "sort"):
        if name == "reverse" and owner.items is not None:
            machine.journal.write(owner, "items", owner.items[::-1])
        elif name == "sort":
            notice_sort(machine, owner, kwargs, frame, node)
            if owner.items:
                _blur(machine, owner, element_of(owner))
        return Const(None)
    if name == "clear":
        machine.journal.write(owner, "items", [])
        return Const(None)
    if (
        name == "index"
        and args
        and owner.items is not None
        and all(isinstance(item, Const) for item in (*owner.items, args[0]))
    ):
        return (
            Const(owner.items.index(args[0]))
            if args[0] in owner.items
            else Unknown("an index of what is not there")
        )
    if name in ("index", "count") and args:
        compared = element_of(owner) if owner.items is None or not owner.items else owner.items[0]
        parts = [*options(compared), *options(args[0])]
        scalar = next((each for each in parts if isinstance(each, TensorScalar)), None)
        if scalar is not None:
            if machine.emits(Truth):
                asked = TensorScalar("bool", scalar.origin)
                machine.notice(Truth(machine.site(frame), node, asked, "in", node, frame.visible()))
            return TensorScalar("int", scalar.origin)
        return Static("int")
    if name == "numel":
        return Static("int")
    return Unknown(f"the method `{name}` of a {owner.kind}")


def _named_tuple_method(
    machine: Machine,
    owner: Sequence,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """What `owner`, a named tuple, gives with other fields, made of a list, or as a dict."""
    items = owner.items
    if name == "_make":
        items, _ = elements_of(machine, args[0], frame, node) if args else (None, None)
    if items is None or len(items) != len(owner.fields):
        items = [Unknown(f"the field `{field}`") for field in owner.fields]
    held = dict(zip(owner.fields, items, strict=True))
    if name == "_asdict":
        return Mapping_(dict(held))
    changed = [kwargs.get(field, value) for field, value in held.items()]
    return Sequence("tuple", changed, None, owner.type_name, owner.fields)


def _remove(machine: Machine, owner: Sequence, value: Value) -> None:
    """`owner.remove(value)`: known where the first item that is equal is."""
    if not owner.items:
        return
    at = next((index for index, item in enumerate(owner.items) if item is value or item == value), None)
    told_apart = isinstance(value, (Const, Named, Instance)) and all(
        isinstance(item, (Const, Named, Instance)) for item in owner.items
    )
    if at is not None and told_apart:
        machine.journal.write(owner, "items", [*owner.items[:at], *owner.items[at + 1 :]])
    elif not told_apart:
        _blur(machine, owner, element_of(owner))


def _blur(machine: Machine, owner: Sequence, value: Value) -> None:
    cover = join(element_of(owner), value) if owner.items or owner.element is not None else value
    if owner.items is None and isinstance(cover, Choice) and any(map(_is_object, cover.options)):
        cover = alike(cover)
    machine.journal.write(owner, "element", cover)
    machine.journal.write(owner, "items", None)


def _is_object(value: Value) -> bool:
    return isinstance(value, Instance)


def _mapping_method(
    machine: Machine,
    owner: Mapping_,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    if name == "__getitem__" and len(args) == 1:
        return get_item(machine, owner, args[0], frame, node)
    if name in ("get", "pop", "setdefault") and args:
        default = args[1] if len(args) > 1 else Const(None)
        key = args[0]
        if isinstance(key, Const) and key.value in owner.items:
            value = owner.items[key.value]
            if name == "pop":
                machine.journal.remove(owner.items, key.value)
            return value
        if isinstance(key, Const) and owner.rest is None:
            if name == "setdefault":
                set_item(machine, owner, key, default, frame, node)
            return default
        return join(get_item(machine, owner, key, frame, node), default)
    if name == "items":
        if owner.rest is None:
            return Sequence(
                "list", [Sequence("tuple", [Const(key), value]) for key, value in owner.items.items()]
            )
        return Sequence(
            "list", None, Sequence("tuple", [Static("str"), get_item(machine, owner, Static(), frame, node)])
        )
    if name == "keys":
        return (
            Sequence("list", [Const(key) for key in owner.items])
            if owner.rest is None
            else Sequence("list", None, Static("str"))
        )
    if name == "values":
        return (
            Sequence("list", list(owner.items.values()))
            if owner.rest is None
            else Sequence("list", None, get_item(machine, owner, Static(), frame, node))
        )
    if name == "update":
        for value in args:
            if isinstance(value, Mapping_):
                for known, item in value.items.items():
                    machine.journal.write(owner.items, known, item)
                if value.rest is not None:
                    machine.journal.write(owner, "rest", value.rest)
            else:
                machine.journal.write(owner, "rest", Unknown("updated from something unknown"))
        for keyword, item in kwargs.items():
            machine.journal.write(owner.items, keyword, item)
        return Const(None)
    if name == "copy":
        return Mapping_(dict(owner.items), owner.rest, owner.kind, owner.factory)
    if name == "clear":
        machine.journal.write(owner, "items", {})
        return Const(None)
    if name == "popitem" and owner.items and owner.rest is None:
        last = next(iter(reversed(owner.items)))
        if not args and not kwargs:
            value = owner.items[last]
            machine.journal.remove(owner.items, last)
            return Sequence("tuple", [Const(last), value])
        delete_item(machine, owner, Unknown("the first key"))
    return Unknown(f"the method `{name}` of a dict")


_TEXT_METHODS = frozenset(
    {
        "lower",
        "upper",
        "startswith",
        "endswith",
        "strip",
        "lstrip",
        "rstrip",
        "replace",
        "split",
        "join",
        "isdigit",
        "count",
        "find",
        "title",
        "capitalize",
        "removeprefix",
        "removesuffix",
    }
)


def _text_method(
    machine: Machine,
    owner: Const | Static,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    if name == "format":
        for value in (*args, *kwargs.values()):
            if from_data(value) and machine.emits(Conversion):
                machine.notice(Conversion(machine.site(frame), node, value, "format"))
        if isinstance(owner, Const) and all(isinstance(value, Const) for value in (*args, *kwargs.values())):
            named = {key: value.value for key, value in kwargs.items() if isinstance(value, Const)}
            given = [value.value for value in args if isinstance(value, Const)]
            return fold(functools.partial(owner.value.format, **named), *given)
        return text_of((*args, *kwargs.values()))
    if isinstance(owner, Const) and name in _TEXT_METHODS and all(isinstance(value, Const) for value in args):
        plain = [value.value for value in args if isinstance(value, Const)]
        if name == "split":
            try:
                return Sequence("list", [Const(part) for part in owner.value.split(*plain)])
            except (TypeError, ValueError):
                return Unknown("this expression raises")
        return fold(getattr(owner.value, name), *plain)
    if name == "join" and args:
        if (
            isinstance(owner, Const)
            and isinstance(args[0], Sequence)
            and args[0].items is not None
            and all(isinstance(item, Const) for item in args[0].items)
        ):
            return fold(owner.value.join, [item.value for item in args[0].items if isinstance(item, Const)])
        return Static("str")
    if name in ("startswith", "endswith", "isdigit"):
        return Static("bool")
    if name in ("find", "count", "index"):
        return Static("int")
    if name == "split":
        return Sequence("list", None, Static("str"))
    return Static("str")
