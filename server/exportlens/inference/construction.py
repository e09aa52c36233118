"""Objects: made by their classes, called, and given what their bases define."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.inference import knowledge
from exportlens.inference.attribute_writes import keep_attribute
from exportlens.inference.attributes import instance_attribute
from exportlens.inference.classes import (
    class_attribute,
    class_order,
    is_module_base,
    is_module_class,
    member_of,
)
from exportlens.inference.cloning import clone
from exportlens.inference.einops import call_layer
from exportlens.inference.functions import call_function, closed_items, fingerprint, plain_items
from exportlens.inference.gradient_hooks import HOOKED_CALL, is_hooked
from exportlens.inference.layer_calls import call_external_module
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.modules import container_kind, initialize, module_attribute
from exportlens.inference.values import (
    Bound,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Named,
    Native,
    Partial,
    Sequence,
    Super,
    Unknown,
    Value,
)


def call_super(
    machine: Machine,
    receiver: Super,
    callee: Bound,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    from exportlens.inference.calls import call_place, call_value

    name = callee.name
    instance = receiver.instance
    base = callee.function.name.rpartition(".")[0] if isinstance(callee.function, Named) else ""
    if isinstance(instance, Instance):
        if name == "__init__":
            if is_module_base(base):
                initialize(machine, instance, base, args, kwargs)
            else:
                call_place(machine, base, instance.cls, args, kwargs, instance, frame, node)
            return Const(None)
        if name == "__setattr__" and len(args) == 2 and isinstance(args[0], Const):
            keep_attribute(machine, instance, str(args[0].value), args[1])
            return Const(None)
        if name == "__getattr__" and args and isinstance(args[0], Const):
            known = module_attribute(machine, instance, str(args[0].value))
            return known if known is not None else Unknown("an attribute that was not seen")
        if name == "forward" and is_module_base(base):
            return call_external_module(machine, instance, base, args, kwargs, frame, node)
        if name == "__call__":
            return call_value(
                machine,
                instance_attribute(machine, instance, "forward", frame, node),
                list(args),
                kwargs,
                frame,
                node,
            )
        made = module_attribute(machine, instance, name)
        if made is not None:
            return call_value(machine, made, list(args), kwargs, frame, node)
    if isinstance(callee.function, Named) and base.startswith("builtins.") and name == "__new__":
        return instance
    return Unknown(f"`super().{name}` of a base that is not followed")


def apply_autograd(
    machine: Machine,
    cls: ClassValue,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """`MyFunction.apply(...)`: its forward, with a context object in front."""
    from exportlens.inference.calls import call_place

    forward, _, _ = class_attribute(cls, "forward")
    result: Value = Unknown("an autograd.Function")
    if isinstance(forward, Function):
        setup, _, _ = class_attribute(cls, "setup_context")
        context = Instance(Named("torch.autograd.function.FunctionCtx"), open=True)
        own = [cls] if any(name.endswith("classmethod") for name in forward.decorators) else []
        first = own if isinstance(setup, Function) else [*own, context]
        result = call_function(machine, forward, [*first, *args], kwargs, frame, node)
    call_place(
        machine,
        "torch.autograd.Function.apply",
        cls,
        plain_items(args),
        closed_items(kwargs),
        result,
        frame,
        node,
    )
    return result


def call_instance(
    machine: Machine,
    instance: Instance,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    from exportlens.inference.calls import call_place, call_value, is_made

    if machine.called is not None and isinstance(instance.cls, ClassValue) and is_module_class(instance.cls):
        machine.called.append((instance.cls, tuple(args)))
        return Unknown("what a model gives")
    call, _, hidden = class_attribute(instance.cls, "__call__")
    if isinstance(call, Function) and not hidden:
        return call_function(machine, call, [instance, *args], kwargs, frame, node)
    if is_hooked(instance):
        given, named = plain_items(args), closed_items(kwargs)
        call_place(machine, HOOKED_CALL, instance, given, named, Unknown("not known yet"), frame, node)
    forward = instance.attributes.get("forward") or class_attribute(instance.cls, "forward")[0]
    if isinstance(forward, Function):
        given = args if "forward" in instance.attributes else [instance, *args]
        return call_function(machine, forward, given, kwargs, frame, node)
    if isinstance(forward, (Bound, Partial, Native)):
        return call_value(machine, forward, args, kwargs, frame, node)
    shaped = call_layer(instance, plain_items(args))
    if shaped is not None:
        return shaped
    container = container_kind(instance.cls)
    for base in class_order(instance.cls):
        if isinstance(base, Named) and (
            knowledge.lookup_module(base.name) is not None or container is not None
        ):
            name = container or base.name
            plain, closed = plain_items(args), closed_items(kwargs)
            result = call_external_module(machine, instance, name, plain, closed, frame, node)
            call_place(machine, name, instance, plain, closed, result, frame, node)
            return result
    made = machine.tracing and any(map(is_made, plain_items(args)))
    return Unknown(f"a call of {instance.describe()}", made=made)


def call_method(
    machine: Machine, instance: Instance, name: str, args: list[Value], frame: Frame, node: ast.AST | None
) -> Value | None:
    """Call the method `name` if the workspace defines it for this object, else None."""
    method, _, _ = class_attribute(instance.cls, name)
    if not isinstance(method, Function):
        return None
    return call_function(machine, method, [instance, *args], {}, frame, node or method.node)


def instantiate(
    machine: Machine,
    cls: ClassValue,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """Make an object of a class of the workspace; a call of an enumeration names one of its members."""
    member = member_of(cls, args[0]) if len(args) == 1 else None
    if member is not None:
        return member
    maker = fingerprint(id(cls.node), args, kwargs)
    reusable = maker is not None and not machine.tracing and cls.closure is None
    if reusable and maker in machine.made:
        template, given = machine.made[maker]
        return clone(
            template, {id(old): new for old, new in zip(given, [*args, *kwargs.values()], strict=True)}
        )
    made = _instantiate(machine, cls, args, kwargs, frame, node)
    if isinstance(made, Instance):
        made.fingerprint = maker
        made.stamp = 0
        if reusable:
            given = [*args, *kwargs.values()]
            machine.made[maker] = (clone(made, {id(value): value for value in given}), given)
    return made


def _instantiate(
    machine: Machine,
    cls: ClassValue,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    order = class_order(cls)
    if any(isinstance(base, Named) and base.name in ("typing.NamedTuple", "NamedTuple") for base in order):
        fields = _fields(cls)
        bound = _bind_fields(fields, plain_items(args), kwargs)
        return Sequence("tuple", list(bound.values()), None, cls.name, tuple(bound))
    instance = Instance(cls, traced=machine.tracing)
    instance.open = any(isinstance(base, Named) and not _harmless(base.name) for base in order)
    init, made_of_fields = _constructor(order)
    if made_of_fields:
        bound = _bind_fields(_fields(cls), plain_items(args), kwargs)
        for name, value in bound.items():
            instance.attributes[name] = value
        if any(isinstance(base, Named) and base.name.rpartition(".")[2] in _RECORDS for base in order):
            # A dataclass that is a dict too, as transformers' outputs are: its fields by name and by position.
            present = {
                key: value
                for key, value in bound.items()
                if not (isinstance(value, Const) and value.value is None)
            }
            instance.attributes["__items__"] = Mapping_(dict(present), None, "record")
        else:
            call_method(machine, instance, "__post_init__", [], frame, node)
    elif init is not None:
        call_function(machine, init, [instance, *args], kwargs, frame, node)
        instance.open = instance.open or class_attribute(cls, "__init__")[2]
    else:
        base_name = next(
            (base.name for base in order if isinstance(base, Named) and is_module_base(base.name)), None
        )
        plain, closed = plain_items(args), closed_items(kwargs)
        if base_name is not None:
            initialize(machine, instance, base_name, plain, closed)
        else:
            _made_by_bases(machine, order, instance, plain, closed, frame, node)
        for base in order:
            if isinstance(base, Named) and base.name.rpartition(".")[2] in (
                "dict",
                "OrderedDict",
                "ModelOutput",
                "UserDict",
            ):
                instance.attributes["__items__"] = Mapping_(
                    dict(closed_items(kwargs).items()), Unknown("an entry") if args else None
                )
            elif isinstance(base, Named) and base.name.rpartition(".")[2] in ("list", "tuple"):
                instance.attributes["__items__"] = Sequence("list", None, Unknown("an element"))
    return instance


def _made_by_bases(
    machine: Machine,
    order: list[Value],
    instance: Instance,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> None:
    """Where no class of the workspace has an `__init__`, that of the first other base makes the object."""
    from exportlens.inference.calls import call_place

    for base in order:
        if isinstance(base, Named):
            call_place(machine, base.name, instance.cls, args, kwargs, instance, frame, node)
            return


def _harmless(name: str) -> bool:
    from exportlens.inference.classes import is_known_base

    return is_known_base(name)


_RECORDS = frozenset({"OrderedDict", "dict"})


_FIELD_DECORATORS = frozenset({"dataclass", "define", "attrs", "frozen"})


def _constructor(order: list[Value]) -> tuple[Function | None, bool]:
    """The `__init__` that makes an object, or whether one is generated from the fields: the nearest class that has either decides."""
    from exportlens.inference.classes import dotted

    for item in order:
        if not isinstance(item, ClassValue):
            continue
        init = item.attributes.get("__init__")
        if isinstance(init, Function):
            return init, False
        if any(
            dotted(decorator).rpartition(".")[2] in _FIELD_DECORATORS
            for decorator in item.node.decorator_list
        ):
            return None, True
    return None, False


def _fields(cls: ClassValue) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    for item in reversed(class_order(cls)):
        if not isinstance(item, ClassValue):
            continue
        for statement in item.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                default = item.attributes.get(name)
                fields[name] = (
                    _field_default(default) if default is not None else Unknown(f"the field `{name}`")
                )
    return fields


def _field_default(value: Value) -> Value:
    return value if not isinstance(value, Unknown) else Unknown("a field's default")


def _bind_fields(
    fields: dict[str, Value], args: list[Value], kwargs: Mapping[str, Value]
) -> dict[str, Value]:
    bound = dict(fields)
    for name, value in zip(fields, args, strict=False):
        bound[name] = value
    for name, value in kwargs.items():
        if name in bound:
            bound[name] = value
    return bound
