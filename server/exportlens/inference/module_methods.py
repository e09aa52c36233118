"""Methods that every torch.nn.Module has: what registers, what gives parameters and submodules, what gives the Module itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from exportlens.inference.classes import is_module_class, same_kind
from exportlens.inference.gradient_hooks import GRADIENT_HOOKS, hook, hook_gradients
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Machine
from exportlens.inference.values import (
    Const,
    Instance,
    Mapping_,
    Sequence,
    Static,
    Tensor,
    Unknown,
    Value,
    options,
)

Method = Callable[[Machine, Instance, list[Value], dict[str, Value]], Value]


def _argument(args: list[Value], kwargs: Mapping[str, Value], position: int, name: str) -> Value | None:
    return kwargs.get(name) or (args[position] if position < len(args) else None)


def _register_buffer(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    name, value = _argument(args, kwargs, 0, "name"), _argument(args, kwargs, 1, "tensor")
    if isinstance(name, Const) and isinstance(name.value, str) and value is not None:
        made = (
            replace(value, origin="buffer", name=f"self.{name.value}") if isinstance(value, Tensor) else value
        )
        if isinstance(made, Unknown):
            made = Tensor("buffer", f"self.{name.value}")
        if machine.tracing and not machine.quiet:
            # What the call began with is not what it registers.
            began = owner.attributes.get(name.value)
            machine.attributes_written.setdefault((id(owner), name.value), (began, []))
        machine.journal.write(owner.attributes, name.value, made)
    return Const(None)


def _register_parameter(
    machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    name, value = _argument(args, kwargs, 0, "name"), _argument(args, kwargs, 1, "param")
    if isinstance(name, Const) and isinstance(name.value, str) and value is not None:
        machine.journal.write(owner.attributes, name.value, value)
    return Const(None)


def _add_module(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    name, value = _argument(args, kwargs, 0, "name"), _argument(args, kwargs, 1, "module")
    if value is None:
        return Const(None)
    items = owner.attributes.get("__items__")
    if isinstance(items, Sequence) and items.items is not None:
        machine.journal.write(items, "items", [*items.items, value])
    elif isinstance(items, Sequence):
        machine.journal.write(
            items, "element", value if items.element is None else join(items.element, value)
        )
    if isinstance(name, Const) and isinstance(name.value, str):
        machine.journal.write(owner.attributes, name.value, value)
    else:
        hold_somewhere(machine, owner, value)
    return Const(None)


# Under this key stands what was put under names that are not known: `setattr(self, f"layer{i}", layer)`.
_SOME_NAME = "*"


def hold_somewhere(machine: Machine, owner: Instance, value: Value) -> None:
    """Put `value` under a name that is not known: one of a kind stands for all, and of several kinds nothing is known."""
    machine.journal.write(owner, "open", True)
    known = owner.attributes.get(_SOME_NAME)
    if isinstance(value, Instance) and (known is None or same_kind(held_somewhere(owner), value)):
        machine.journal.write(owner.attributes, _SOME_NAME, value)
    else:
        machine.journal.write(owner.attributes, _SOME_NAME, Unknown("one of several kinds"))


def held_somewhere(owner: Instance) -> Value | None:
    """What stands under names that are not known, where it is all of one kind."""
    held = list(options(owner.attributes.get(_SOME_NAME, Unknown())))
    return held[-1] if all(same_kind(value, held[-1]) for value in held) else None


def _itself(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, args, kwargs
    return owner


def _nothing(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, owner, args, kwargs
    return Const(None)


def _each_parameter() -> Value:
    return Sequence("generator", None, Tensor("parameter"))


def _each_named_parameter() -> Value:
    return Sequence("generator", None, Sequence("tuple", [Static("str"), Tensor("parameter")]))


# Nothing but a Module has methods of these names: what they give, whatever Module it is.
PARAMETERS: dict[str, Callable[[], Value]] = {
    "parameters": _each_parameter,
    "buffers": _each_parameter,
    "named_parameters": _each_named_parameter,
    "named_buffers": _each_named_parameter,
}


def _parameters(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, owner, args, kwargs
    return _each_parameter()


def _named_parameters(
    machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    del machine, owner, args, kwargs
    return _each_named_parameter()


def _children(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, args, kwargs
    items = owner.attributes.get("__items__")
    if isinstance(items, Sequence):
        return Sequence("generator", items.items, items.element)
    children: list[Value] = [
        value
        for value in owner.attributes.values()
        if isinstance(value, Instance) and is_module_class(value.cls)
    ]
    return (
        Sequence("generator", children)
        if children and not owner.open
        else Sequence("generator", None, Unknown("a submodule"))
    )


def _named_children(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    items = owner.attributes.get("__items__")
    if isinstance(items, Mapping_) and items.rest is None:
        return Sequence(
            "generator", [Sequence("tuple", [Const(key), value]) for key, value in items.items.items()]
        )
    children = _children(machine, owner, args, kwargs)
    assert isinstance(children, Sequence)
    if isinstance(items, Sequence) and items.items is not None:
        return Sequence(
            "generator",
            [Sequence("tuple", [Const(str(index)), value]) for index, value in enumerate(items.items)],
        )
    return Sequence("generator", None, Sequence("tuple", [Static("str"), element_of(children)]))


def _modules(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, owner, args, kwargs
    return Sequence("generator", None, Unknown("a submodule"))


def _named_modules(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, owner, args, kwargs
    return Sequence("generator", None, Sequence("tuple", [Static("str"), Unknown("a submodule")]))


def _unknown_method(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, owner, args, kwargs
    return Unknown("part of a module's state")


METHODS: dict[str, Method] = {
    "register_buffer": _register_buffer,
    "register_parameter": _register_parameter,
    "add_module": _add_module,
    "register_module": _add_module,
    "parameters": _parameters,
    "buffers": _parameters,
    "named_parameters": _named_parameters,
    "named_buffers": _named_parameters,
    "children": _children,
    "named_children": _named_children,
    "modules": _modules,
    "named_modules": _named_modules,
    "state_dict": _unknown_method,
    "get_submodule": _unknown_method,
    "get_parameter": _unknown_method,
    "get_buffer": _unknown_method,
    "extra_repr": _unknown_method,
    "_get_name": _unknown_method,
    "load_state_dict": _unknown_method,
    **dict.fromkeys(
        (
            "to",
            "cuda",
            "cpu",
            "float",
            "double",
            "half",
            "bfloat16",
            "eval",
            "train",
            "apply",
            "requires_grad_",
            "type",
            "to_empty",
            "share_memory",
        ),
        _itself,
    ),
    **dict.fromkeys(GRADIENT_HOOKS, hook_gradients),
    **dict.fromkeys(
        (
            "register_forward_hook",
            "register_forward_pre_hook",
            "register_load_state_dict_post_hook",
            "register_state_dict_pre_hook",
            "_register_load_state_dict_pre_hook",
            "_register_state_dict_hook",
        ),
        hook,
    ),
    **dict.fromkeys(("zero_grad", "set_extra_state", "__init__"), _nothing),
}
