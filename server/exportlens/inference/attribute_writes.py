"""Attributes are written: the model's own, those that a `__setattr__` of its class keeps elsewhere, and those of classes."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.classes import class_attribute, is_module_class
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import (
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Tensor,
    Unknown,
    Value,
)


def set_attribute(
    machine: Machine,
    owner: Value,
    attr: str,
    value: Value,
    frame: Frame,
    node: ast.AST,
    augmented: bool = False,
) -> None:
    """`owner.attr = value`."""
    if isinstance(owner, Choice):
        for option in owner.options:
            if isinstance(option, Instance):
                set_attribute(machine, option, attr, value, frame, node, augmented)
        return
    _notice_write(machine, owner, attr, value, frame, node, augmented)
    if isinstance(owner, Instance):
        written, _, _ = class_attribute(owner.cls, attr)
        if isinstance(written, Function) and written.setter is not None:
            from exportlens.inference.calls import call_value

            call_value(machine, written.setter, [owner, value], {}, frame, node)
            return
        setter, _, _ = class_attribute(owner.cls, "__setattr__")
        if isinstance(setter, Function):
            from exportlens.inference.calls import call_value

            mark = machine.journal.mark()
            call_value(machine, setter, [owner, Const(attr), value], {}, frame, node)
            if machine.journal.written_since(mark):
                return
            # Under which name it is kept is not known: under its own, as a rule.
        keep_attribute(machine, owner, attr, value)
    elif isinstance(owner, ClassValue):
        machine.journal.write(owner.attributes, attr, value)


def set_past_class(
    machine: Machine,
    owner: Instance,
    attr: str,
    value: Value,
    frame: Frame,
    node: ast.AST,
    augmented: bool = False,
) -> None:
    """`object.__setattr__(owner, attr, value)`, `owner.__dict__[attr] = value`: whatever the class makes of `owner.attr = value`."""
    if frame.function is None or frame.function.name != "__setattr__":
        _notice_write(machine, owner, attr, value, frame, node, augmented)
    keep_attribute(machine, owner, attr, value)


def _notice_write(
    machine: Machine,
    owner: Value,
    attr: str,
    value: Value,
    frame: Frame,
    node: ast.AST,
    augmented: bool,
) -> None:
    if not machine.tracing or machine.quiet:
        return
    if not isinstance(owner, (Instance, ClassValue, Tensor, Function)):
        return
    old = None
    if isinstance(owner, (Instance, ClassValue)):
        old = _before(machine, owner, attr, frame, node)
    began, writers = machine.attributes_written.setdefault((id(owner), attr), (old, []))
    writer = None if frame.function is None else frame.function.node
    elsewhere = any(each is not writer for each in writers)
    if machine.doubt == 0 and not machine.data_guards:
        # What only an option or data leads to (`if start: self.reset()`) leaves what the last call left to those that read it.
        writers.append(writer)
    if machine.emits(AttributeWrite):
        site = machine.site(frame)
        readers = tuple(machine.attributes_read.get((id(owner), attr), ()))
        machine.notice(
            AttributeWrite(site, node, owner, attr, value, old, augmented, began, elsewhere, readers)
        )


def keep_attribute(machine: Machine, owner: Instance, attr: str, value: Value) -> None:
    """What `owner` itself holds under the name from now on, as `object.__setattr__` does it."""
    if isinstance(value, Instance) and is_module_class(owner.cls):
        value.registered = True
    if isinstance(value, Tensor) and value.origin == "buffer" and not value.name:
        value = replace(value, name=f"self.{attr}")
    if isinstance(value, Tensor) and value.origin == "fresh" and not machine.tracing:
        # What a constructor computes of parameters (`self.mean = self.weight.detach().clone()`) was made before tracing as well.
        value = replace(value, origin="constant", name="")
    old = owner.attributes.get(attr)
    if isinstance(value, Tensor) and value.origin == "constant":
        if machine.tracing and not machine.settings.strict:
            # Of a number that becomes a tensor in traced code non-strict tracing knows the value, wherever it is kept.
            value = replace(value, name=f"self.{attr}")
        elif isinstance(old, Tensor) and old.origin == "buffer":
            value = replace(value, origin="buffer", name=f"self.{attr}")
    owner.stamp += 1
    if owner.fingerprint is not None:
        # What an object is depends on what was written to it since.
        machine.journal.write(owner, "fingerprint", _after_write(owner.fingerprint, attr, value))
    if machine.tracing and is_module_class(owner.cls):
        # The same write in another entry point leads to the same version: what was remembered there holds.
        machine.version = hash((machine.version, _after_write(owner.fingerprint, attr, value)))
    machine.journal.write(owner.attributes, attr, value)


def _before(
    machine: Machine, owner: Instance | ClassValue, attr: str, frame: Frame, node: ast.AST
) -> Value | None:
    """What `owner.attr` is before a write: its own, a number or None that the body of its class holds for all, or what its class
    keeps elsewhere."""
    if attr in owner.attributes or isinstance(owner, ClassValue):
        return owner.attributes.get(attr)
    shared, _, hidden = class_attribute(owner.cls, attr)
    if shared is not None:
        return shared if isinstance(shared, Const) and not hidden else None
    getter, _, _ = class_attribute(owner.cls, "__getattr__")
    setter, _, _ = class_attribute(owner.cls, "__setattr__")
    if not isinstance(getter, Function) or not isinstance(setter, Function):
        return None
    from exportlens.inference.calls import call_value

    try:
        kept = call_value(machine, getter, [owner, Const(attr)], {}, frame, node)
    except Raised:
        # There is no such attribute yet, and the code itself does not ask for it here.
        return None
    return None if isinstance(kept, Unknown) else kept


def _after_write(fingerprint: object, attr: str, value: Value) -> object:
    from exportlens.inference.functions import key_of

    key = key_of(value)
    return None if key is None else hash((fingerprint, attr, key))
