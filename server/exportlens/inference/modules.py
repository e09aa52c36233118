"""torch.nn modules: construction, containers, and what a Module has under a name."""

from __future__ import annotations

import ast
import re

from exportlens.inference import knowledge
from exportlens.inference.classes import class_attribute, class_order, is_module_class
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.module_methods import METHODS
from exportlens.inference.values import (
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Named,
    Native,
    Sequence,
    Static,
    Tensor,
    Unknown,
    Value,
)

_LISTS = {"torch.nn.ModuleList": "list", "torch.nn.Sequential": "list", "torch.nn.ParameterList": "list"}
_DICTS = {"torch.nn.ModuleDict", "torch.nn.ParameterDict"}


def container_kind(cls: Value) -> str | None:
    """The torch.nn container that `cls` is or derives from: "torch.nn.ModuleList" and the like."""
    for item in class_order(cls):
        if isinstance(item, Named):
            name = knowledge.canonical_name(item.name) or item.name
            if name in _LISTS or name in _DICTS:
                return name
    return None


def construct(machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Instance:
    """An instance of the external module class `name`."""
    instance = Instance(Named(knowledge.canonical_name(name) or name))
    initialize(machine, instance, name, args, kwargs)
    return instance


def initialize(
    machine: Machine, instance: Instance, name: str, args: list[Value], kwargs: dict[str, Value]
) -> None:
    """What the constructor of the external module class `name` does to `instance`."""
    canonical = knowledge.canonical_name(name) or name
    if canonical in _LISTS or canonical in _DICTS:
        machine.journal.write(instance.attributes, "__items__", _container_items(machine, canonical, args))
        if canonical == "torch.nn.Sequential" and len(args) == 1 and isinstance(args[0], Mapping_):
            for key, layer in args[0].items.items():
                machine.journal.write(instance.attributes, key, layer)
        return
    known = knowledge.lookup_module(name)
    if known is None:
        return
    bound = known.bind(args, kwargs)
    if bound is None:
        return
    arguments = {key: value for key, value in bound.items() if isinstance(value, Value)}
    machine.journal.write(instance, "arguments", {**arguments, "": Const(name)})


def _container_items(machine: Machine, canonical: str, args: list[Value]) -> Value:
    if canonical in _DICTS:
        given = args[0] if args else Mapping_({})
        if isinstance(given, Mapping_):
            return Mapping_(dict(given.items), given.rest)
        if isinstance(given, Sequence) and given.items is not None:
            pairs = {}
            for pair in given.items:
                if (
                    isinstance(pair, Sequence)
                    and pair.items
                    and len(pair.items) == 2
                    and isinstance(pair.items[0], Const)
                ):
                    pairs[pair.items[0].value] = pair.items[1]
            return Mapping_(pairs)
        return Mapping_({}, Unknown("modules of an unknown dict"))
    if canonical == "torch.nn.Sequential":
        if len(args) == 1 and isinstance(args[0], Mapping_):
            return (
                Sequence("list", list(args[0].items.values()))
                if args[0].rest is None
                else Sequence("list", None, args[0].rest)
            )
        return Sequence("list", list(args))
    given = args[0] if args else Sequence("list", [])
    from exportlens.inference.iteration import elements_of

    if isinstance(given, Sequence):
        return Sequence("list", None if given.items is None else list(given.items), given.element)
    items, element = elements_of(machine, given, Frame(None, None, {}), None)  # type: ignore[arg-type]
    return Sequence("list", items, element)


def module_attribute(machine: Machine, owner: Instance, attr: str) -> Value | None:
    """What torch.nn.Module, or the torch.nn class that `owner` derives from, gives under the name `attr`; None where nothing."""
    if not is_module_class(owner.cls):
        return _base_attribute(machine, owner, attr)
    if attr == "training":
        return Const(machine.settings.training)
    known = state_attribute(owner, attr)
    if known is not None:
        return known
    if container_kind(owner.cls) is not None and attr in _CONTAINER_METHODS:
        return Native("torch.nn." + attr, lambda m, a, k, f, n: _container_method(m, owner, attr, a, k, f, n))
    method = METHODS.get(attr)
    if method is not None:
        return Native("torch.nn.Module." + attr, lambda m, a, k, f, n: method(m, owner, a, k), owner)
    if attr in ("_modules", "_parameters", "_buffers"):
        buffers = {name: held for name, held in owner.attributes.items() if _is_buffer(held)}
        return Mapping_(buffers if attr == "_buffers" else {}, Unknown("state of a module"))
    items = owner.attributes.get("__items__")
    if (
        isinstance(items, Sequence)
        and items.items is not None
        and attr.isdigit()
        and int(attr) < len(items.items)
    ):
        return items.items[int(attr)]
    return items.items.get(attr) if isinstance(items, Mapping_) else None


def _is_buffer(value: Value) -> bool:
    return isinstance(value, Tensor) and value.origin == "buffer"


def _base_attribute(machine: Machine, owner: Instance, attr: str) -> Value | None:
    del machine, owner, attr
    return None


def state_attribute(owner: Instance, attr: str) -> Value | None:
    """A Parameter, a buffer, a Module or an option that torch's own classes give `owner` under the name `attr`."""
    for base in class_order(owner.cls):
        if attr == "weight" and isinstance(base, Named) and base.name.rpartition(".")[2] in _CONVOLUTIONS:
            return Tensor("parameter", "self.weight")
        known = knowledge.lookup_module(base.name) if isinstance(base, Named) else None
        if known is None:
            continue
        kind = base.name.rpartition(".")[2] if isinstance(base, Named) else ""
        spatial = int(kind[-2]) if _CONVOLUTION.fullmatch(kind) and attr in _PER_DIMENSION else 0
        if attr in known.attributes or spatial or (kind in _RECURRENT and attr in _OPTIONS_OF_RECURRENT):
            default = next((param.default for param in known.params if param.name == attr), None)
            option = owner.arguments[attr] if attr in owner.arguments else _literal(default)
            return _per_dimension(option, spatial) if spatial else option
        for entry in known.state:
            if entry.name == attr or (entry.name.endswith("*") and attr.startswith(entry.name[:-1])):
                if entry.condition:
                    given = owner.arguments.get(entry.condition)
                    if isinstance(given, Const) and not given.value:
                        return Const(None)
                    if given is None:
                        usual = _literal(
                            next((p.default for p in known.params if p.name == entry.condition), None)
                        )
                        if isinstance(usual, Const) and not usual.value:
                            return Const(None)
                if entry.type in ("parameter", "buffer"):
                    gradient = True if entry.type == "parameter" else None
                    return Tensor(entry.type, f"self.{attr}", None, None, requires_grad=gradient)
                return Instance(Named(entry.type))
    return None


_CONVOLUTION = re.compile(r"(Lazy)?Conv(Transpose)?[123]d")
_PER_DIMENSION = frozenset({"kernel_size", "stride", "padding", "dilation", "output_padding"})
# Options that the constructors of these classes hand on unseen.
_RECURRENT = frozenset({"RNN", "LSTM", "GRU"})
_OPTIONS_OF_RECURRENT = frozenset(
    {
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    }
)


def _per_dimension(option: Value, number: int) -> Value:
    """How a convolution keeps an option: one number for each of its dimensions, whatever it was given."""
    if isinstance(option, Const) and isinstance(option.value, int):
        return Sequence("tuple", [option] * number)
    if isinstance(option, Static) and option.type == "int":
        return Sequence("tuple", [option] * number)
    if isinstance(option, Sequence):
        return Sequence("tuple", option.items, option.element)
    return option if isinstance(option, Const) else Unknown("an option of a convolution")


# Bases of torch's own convolutions, which are no part of its documented names but are derived from all the same.
_CONVOLUTIONS = frozenset({"_ConvNd", "_ConvTransposeNd", "_ConvTransposeMixin"})


def _literal(text: str | None) -> Value:
    if text is None:
        return Static()
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return Static()
    return Const(value) if isinstance(value, (int, float, bool, str, type(None))) else Static()


_CONTAINER_METHODS = frozenset(
    {"append", "extend", "insert", "keys", "values", "items", "pop", "update", "get", "__len__", "__iter__"}
)


def _container_method(
    machine: Machine,
    owner: Instance,
    attr: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    from exportlens.inference.containers import call_container_method

    items = owner.attributes.get("__items__", Unknown("items"))
    result = call_container_method(machine, items, attr, args, kwargs, frame, node)
    return owner if attr in ("append", "extend", "insert", "update") else result


def has_forward(cls: ClassValue) -> Function | None:
    """The `forward` of a Module class that the workspace defines."""
    value, _, _ = class_attribute(cls, "forward")
    return value if isinstance(value, Function) else None
