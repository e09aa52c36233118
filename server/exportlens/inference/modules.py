"""torch.nn modules: construction, state, calls, and the methods that every Module has."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.classes import class_attribute, class_order, is_module_class, same_kind
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.numpy_reads import notice_numpy
from exportlens.inference.values import (
    Array,
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
    options,
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
    method = _METHODS.get(attr)
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


# --- methods that every Module has -------------------------------------------------------------------------------------

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


# Under this key stands that a Module was given a hook on its gradients, which its calls run from then on.
_HOOKED = "__backward_hook__"
# The methods that give it one.
GRADIENT_HOOKS = frozenset(
    {"register_backward_hook", "register_full_backward_hook", "register_full_backward_pre_hook"}
)
# What a hook is removed by.
_HANDLE = "torch.utils.hooks.RemovableHandle"
# As what such a call is noticed.
HOOKED_CALL = "torch.nn.Module.__call__"


def _hook(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del machine, owner, args, kwargs
    return Instance(Named(_HANDLE), open=True)


def _hook_gradients(machine: Machine, owner: Instance, args: list[Value], kwargs: dict[str, Value]) -> Value:
    del args, kwargs
    if not machine.doubt:
        # Where paths join, what one of them puts there is taken to be there.
        machine.journal.write(owner.attributes, _HOOKED, Const(True))
    return Instance(Named(_HANDLE), {"remove": Native(f"{_HANDLE}.remove", _unhook(owner))}, open=True)


def _unhook(owner: Instance) -> Callable[..., Value]:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        del args, kwargs, frame, node
        machine.journal.write(owner.attributes, _HOOKED, Const(False))
        return Const(None)

    return run


def is_hooked(owner: Instance) -> bool:
    """Whether a Module certainly has a hook on its gradients."""
    return owner.attributes.get(_HOOKED) == Const(True)


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


_METHODS: dict[str, Method] = {
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
    **dict.fromkeys(GRADIENT_HOOKS, _hook_gradients),
    **dict.fromkeys(
        (
            "register_forward_hook",
            "register_forward_pre_hook",
            "register_load_state_dict_post_hook",
            "register_state_dict_pre_hook",
            "_register_load_state_dict_pre_hook",
            "_register_state_dict_hook",
        ),
        _hook,
    ),
    **dict.fromkeys(("zero_grad", "set_extra_state", "__init__"), _nothing),
}

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


def call_external_module(
    machine: Machine,
    instance: Instance,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """Call an instance of a torch.nn class: containers run their items, others follow torch's own record."""
    canonical = knowledge.canonical_name(name) or name
    if canonical == "torch.nn.Sequential":
        return _run_sequential(machine, instance, args, frame, node)
    known = knowledge.lookup_module(name)
    if known is None:
        return Unknown(f"calls `{name}`")
    from exportlens.inference.torch_calls import apply_op

    for number in _numbers_held(canonical, instance.arguments):
        notice_numpy(machine, number, "layer", frame, node)
    result = apply_op(machine, known.forward, name, args, kwargs, frame, node)
    if isinstance(result, Tensor) and any(param.name == "reduction" for param in known.params):
        result = replace(result, rank=_rank_of_loss(instance.arguments))
    if machine.tracing and known.state:
        result = _computed(result)
    if not machine.without_gradients and any(
        entry.type == "parameter" and not entry.condition for entry in known.state
    ):
        result = _with_gradient(result)
    packed = args[0] if args and is_packed(args[0]) else None
    if packed is not None:
        states = (
            result.items[1] if isinstance(result, Sequence) and result.items else Unknown("states of a layer")
        )
        return Sequence("tuple", [packed, states])
    return result


def _computed(result: Value) -> Value:
    """What a layer with parameters or buffers gives in traced code: no number of it is known, whatever it was given."""
    if isinstance(result, Tensor) and result.origin in ("constant", "literal"):
        return replace(result, origin="fresh")
    if isinstance(result, Sequence) and result.kind == "tuple" and result.items is not None:
        result.items = [_computed(item) for item in result.items]
    return result


def _with_gradient(result: Value) -> Value:
    """What a layer with parameters gives: a tensor, or a tuple of such."""
    if isinstance(result, Tensor):
        return replace(result, requires_grad=True)
    if isinstance(result, Sequence) and result.kind == "tuple" and result.items is not None:
        result.items = [_with_gradient(item) for item in result.items]
    return result


def _rank_of_loss(arguments: Mapping[str, Value]) -> int | None:
    """A loss is one number, where it is not asked for each element's."""
    if "size_average" in arguments or "reduce" in arguments:
        return None
    reduction = arguments.get("reduction", Const("mean"))
    return 0 if isinstance(reduction, Const) and reduction.value in ("mean", "sum", "batchmean") else None


def is_packed(value: Value) -> bool:
    """Whether `value` is a PackedSequence, which recurrent layers give back as one."""
    return (
        isinstance(value, Instance)
        and isinstance(value.cls, Named)
        and value.cls.name.endswith("rnn.PackedSequence")
    )


def _numbers_held(name: str, arguments: Mapping[str, Value]) -> list[Value]:
    """The numbers of NumPy's that a layer was made with and that its forward asks about; sizes of weights it does not."""
    kind = name.rpartition(".")[2]
    asked = {key for key in arguments if key in _ASKED_ABOUT}
    if "kernel_size" in arguments and "Pool" in kind:
        asked.add("kernel_size")
    given = [
        item
        for key in sorted(asked)
        if isinstance(value := arguments[key], Value)
        for item in ((value.items or []) if isinstance(value, Sequence) else [value])
    ]
    return [value for value in given if isinstance(value, Array) and value.held]


# Measured on torch 2.13, in strict mode.
_ASKED_ABOUT = frozenset(
    {
        "stride", "padding", "dilation", "groups", "num_groups", "normalized_shape", "eps", "momentum", "p", "negative_slope", "alpha",
        "dim", "upscale_factor", "output_size", "min_val", "max_val",
    }
)  # fmt: skip


def _run_sequential(
    machine: Machine, instance: Instance, args: list[Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    items = instance.attributes.get("__items__")
    if not isinstance(items, Sequence) or not args:
        return Unknown("a Sequential whose modules are not known")
    value = args[0]
    if items.items is not None:
        for item in items.items:
            value = call_value(machine, item, [value], {}, frame, node)
        return value
    element = element_of(items)
    return (
        join(value, call_value(machine, element, [value], {}, frame, node))
        if items.element is not None
        else Unknown("modules not known")
    )


def has_forward(cls: ClassValue) -> Function | None:
    """The `forward` of a Module class that the workspace defines."""
    value, _, _ = class_attribute(cls, "forward")
    return value if isinstance(value, Function) else None
