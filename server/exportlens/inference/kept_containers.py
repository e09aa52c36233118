"""Lists and dicts that a model keeps from call to call."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.inference.classes import class_attribute
from exportlens.inference.lattice import element_of
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.places import ContainerWrite
from exportlens.inference.values import Instance, Mapping_, Sequence, Static, Tensor, Unknown, Value

_ADDING = frozenset({"append", "appendleft", "extend", "insert", "add"})
# What takes an item out, or leaves the same ones in another order.
_TAKING = frozenset({"pop", "popleft", "popitem", "rotate", "reverse"})


def notice_method(
    machine: Machine,
    container: Value,
    name: str,
    args: list[Value],
    kwargs: Mapping[str, Value],
    frame: Frame,
    node: ast.AST,
) -> None:
    """`owner.attr.name(...)`: a method of a list or a dict that an object may keep."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    holder = node.func.value
    if name == "update" and isinstance(container, Mapping_):
        if container.kind == "Counter":
            _notice_write(machine, container, "count", Static("int"), frame, node, holder)
        else:
            _notice_update(machine, container, args, kwargs, frame, node, holder)
    elif name in _ADDING and args:
        _notice_write(machine, container, name, args[-1], frame, node, holder)
    elif name in _TAKING:
        item = element_of(container) if isinstance(container, Sequence) else Unknown("an item of a dict")
        _notice_write(machine, container, name, item, frame, node, holder)
    elif name == "clear":
        _note_emptied(machine, container, frame, holder)


def _notice_update(
    machine: Machine,
    container: Mapping_,
    args: list[Value],
    kwargs: Mapping[str, Value],
    frame: Frame,
    node: ast.AST,
    holder: ast.expr,
) -> None:
    """`owner.attr.update(...)`: each item that it sets."""
    given = {**(args[0].items if args and isinstance(args[0], Mapping_) else {}), **kwargs}
    for value in given.values():
        if isinstance(value, Tensor):
            _notice_write(machine, container, "update", value, frame, node, holder)
            return


def notice_item(machine: Machine, container: Value, value: Value, frame: Frame, node: ast.AST) -> None:
    """`owner.attr[key] = value`."""
    if not isinstance(node, ast.Subscript):
        return
    if isinstance(node.slice, ast.Slice):
        if node.slice.lower is None and node.slice.upper is None:
            _note_emptied(machine, container, frame, node.value)
    else:
        _notice_write(machine, container, "[]", value, frame, node, node.value)


def _notice_write(
    machine: Machine,
    container: Value,
    how: str,
    value: Value,
    frame: Frame,
    node: ast.AST,
    expression: ast.expr,
) -> None:
    if not machine.emits(ContainerWrite):
        return
    owner, attr = _keeper(container, frame, expression), getattr(expression, "attr", "")
    if owner is None and isinstance(expression, ast.Name):
        # Under another name: `states = self.states`.
        owner, attr = _keeper_of_name(container, frame)
    if owner is None and isinstance(container, Mapping_):
        # Under the name of a parameter, or inside of another dict: `state["filter"]`.
        owner, attr = _keeper_around(machine, container)
    if owner is None and isinstance(expression, ast.Name) and _is_shared(container, expression.id, frame):
        machine.notice(ContainerWrite(machine.site(frame), node, None, expression.id, how, value))
    if owner is None:
        return
    anew = (id(owner), attr) in machine.attributes_written
    machine.notice(ContainerWrite(machine.site(frame), node, owner, attr, how, value, anew))


def _keeper_of_name(container: Value, frame: Frame) -> tuple[Instance | None, str]:
    """The object of which a method runs, and its attribute that holds `container`, where both were there before the call."""
    owner = frame.locals.get("self")
    if isinstance(owner, Instance) and not owner.traced:
        for attr, held in owner.attributes.items():
            if held is container:
                return owner, attr
    return None, ""


def _keeper_around(machine: Machine, container: Mapping_) -> tuple[Instance | None, str]:
    """The object that keeps a dict in which `container` is, or which it is, and its attribute."""
    for kept, owner, attr in machine.dicts_read.values():
        if isinstance(owner, Instance) and not owner.traced and _holds(kept, container, 3):
            return owner, attr
    return None, ""


def _holds(kept: Value, container: Mapping_, depth: int) -> bool:
    if kept is container:
        return True
    return (
        depth > 0
        and isinstance(kept, Mapping_)
        and any(
            isinstance(each, Mapping_) and _holds(each, container, depth - 1) for each in kept.items.values()
        )
    )


def _is_shared(container: Value, name: str, frame: Frame) -> bool:
    """Whether `name` is a global that holds `container`, a default of the function, or a variable of a function around it that ran
    before the call."""
    if frame.function is None:
        return False
    if name in frame.locals:
        defaults = [*frame.function.defaults, *frame.function.kw_defaults]
        return frame.locals[name] is container and any(each is container for each in defaults)
    outer = frame.closure
    while outer is not None:
        if name in outer.locals:
            return not outer.traced and outer.function is not None and outer.locals[name] is container
        outer = outer.closure
    return frame.scope.values.get(name) is container


def _note_emptied(machine: Machine, container: Value, frame: Frame, expression: ast.expr) -> None:
    """What comes into the container from here on is of this call."""
    if machine.tracing and not machine.quiet and isinstance(expression, ast.Attribute):
        owner = _keeper(container, frame, expression)
        if owner is not None:
            machine.attributes_written.setdefault((id(owner), expression.attr), (container, []))


def _keeper(container: Value, frame: Frame, expression: ast.expr) -> Instance | None:
    """The object whose attribute `expression` is, where it holds `container` and was there before the call."""
    if not isinstance(expression, ast.Attribute):
        return None
    owner, attr = _object(frame, expression.value), expression.attr
    if owner is None or owner.traced:
        return None
    # The class may keep it for all of its objects.
    held = owner.attributes[attr] if attr in owner.attributes else class_attribute(owner.cls, attr)[0]
    return owner if held is container else None


def _object(frame: Frame, expression: ast.expr) -> Instance | None:
    found: Value | None = None
    if isinstance(expression, ast.Name):
        found = frame.locals.get(expression.id)
    elif isinstance(expression, ast.Attribute):
        outer = _object(frame, expression.value)
        found = None if outer is None else outer.attributes.get(expression.attr)
    return found if isinstance(found, Instance) else None
