"""Calls: functions followed, objects made, external callables answered from knowledge."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from exportlens.inference import knowledge
from exportlens.inference.cloning import clone
from exportlens.inference.containers import call_container_method
from exportlens.inference.dynamic import program_of, sized
from exportlens.inference.einops import call_einops, call_layer
from exportlens.inference.expressions import evaluate
from exportlens.inference.iteration import elements_of
from exportlens.inference.lattice import join
from exportlens.inference.legacy import make_tensor
from exportlens.inference.library import make_object
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.modules import call_external_module, container_kind, initialize, module_attribute
from exportlens.inference.natives import NATIVES
from exportlens.inference.numpy_calls import array_method, call_numpy
from exportlens.inference.objects import (
    class_attribute,
    class_order,
    instance_attribute,
    is_module_base,
    member_of,
    taken_up,
)
from exportlens.inference.places import Call, Conversion, ExportCall, Place
from exportlens.inference.state import Locals
from exportlens.inference.torch_calls import call_tensor_method, call_torch, is_tensor_method
from exportlens.inference.values import (
    Array,
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Named,
    Native,
    Partial,
    Sequence,
    Shape,
    Static,
    Super,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    from_data,
)

_MAX_DEPTH = 36
_MAX_RECURSION = 2
_MAX_LIBRARY_CALLS = 400
_OPERATOR_DECORATORS = frozenset({"custom_op", "triton_op"})
EXPORT_CALLS = frozenset(
    {
        "torch.export.export",
        "torch.export.draft_export",
        "torch.export.export_for_training",
        "torch.export.export_for_inference",
        "torch._export.export",
        "torch.export._trace._export",
    }
)


def call_expression(machine: Machine, node: ast.Call, frame: Frame) -> Value:
    """The value of a call expression."""
    if isinstance(node.func, ast.Name) and node.func.id == "super":
        return _super(machine, node, frame)
    callee = evaluate(machine, node.func, frame)
    args: list[Value] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            items, element = elements_of(machine, evaluate(machine, argument.value, frame), frame, argument)
            if items is None:
                args.append(_Spread(element))
            else:
                args.extend(items)
        else:
            args.append(evaluate(machine, argument, frame))
    kwargs: dict[str, Value] = {}
    open_kwargs: Value | None = None
    for keyword in node.keywords:
        value = evaluate(machine, keyword.value, frame)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, Mapping_):
            kwargs.update({str(key): item for key, item in value.items.items()})
            open_kwargs = value.rest or open_kwargs
        elif not (isinstance(value, Const) and value.value is None):
            open_kwargs = Unknown("unpacked keywords")
    if open_kwargs is not None:
        kwargs["**"] = open_kwargs
    machine.step()
    return call_value(machine, callee, args, kwargs, frame, node)


class _Spread(Value):
    """Any number of positional arguments, as `*values` of unknown length gives them."""

    __slots__ = ("element",)

    def __init__(self, element: Value) -> None:
        self.element = element


def call_value(
    machine: Machine, callee: Value, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """The value of calling `callee`. Raises Raised when the call certainly raises."""
    if isinstance(callee, Function):
        result = call_function(machine, callee, args, kwargs, frame, node)
        if callee.decorators:
            _call_place(machine, "", None, _plain(args), _closed(kwargs), result, frame, node, callee)
        return result
    if isinstance(callee, Bound):
        return _call_bound(machine, callee, args, kwargs, frame, node)
    if isinstance(callee, Named):
        return _call_external(machine, callee.name, _plain(args), _closed(kwargs), frame, node)
    if isinstance(callee, ClassValue):
        return instantiate(machine, callee, args, kwargs, frame, node)
    if isinstance(callee, Instance):
        return _call_instance(machine, callee, args, kwargs, frame, node)
    if isinstance(callee, Partial):
        return call_value(
            machine, callee.function, [*callee.args, *args], {**callee.kwargs, **kwargs}, frame, node
        )
    if isinstance(callee, Native):
        result = callee.run(machine, _plain(args), _closed(kwargs), frame, node)
        if callee.name.startswith("torch.nn.Module."):
            _call_place(machine, callee.name, None, _plain(args), _closed(kwargs), result, frame, node)
        return result
    if isinstance(callee, Choice):
        return _call_choice(machine, callee, args, kwargs, frame, node)
    if (
        isinstance(callee, Unknown)
        and callee.method == "item"
        and not args
        and machine.tracing
        and _of_an_argument(node)
    ):
        return TensorScalar("", "`.item()`")
    if isinstance(callee, Unknown) and (
        callee.method in _ONLY_TENSORS or (callee.made and is_tensor_method(callee.method))
    ):
        return call_tensor_method(
            machine, Tensor(), callee.method, _plain(args), _closed(kwargs), frame, node
        )
    made = machine.tracing and (callee.made if isinstance(callee, Unknown) else False)
    if machine.tracing and not made and isinstance(node, ast.Call) and _is_part(node.func, frame):
        made = any(map(_is_made, (*_plain(args), *kwargs.values())))
    return Unknown("a call of something unknown", made=made)


def _is_made(value: Value) -> bool:
    return (isinstance(value, Unknown) and value.made) or (isinstance(value, Tensor) and from_data(value))


def _is_part(node: ast.expr, frame: Frame) -> bool:
    """Whether what is called belongs to the model: an attribute of `self`, or a local name that stands for one."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and node.args
    ):
        node = node.args[0]
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and (node.id == "self" or node.id in frame.locals)


def _plain(args: list[Value]) -> list[Value]:
    return [value.element if isinstance(value, _Spread) else value for value in args]


def _closed(kwargs: dict[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in kwargs.items() if key != "**"} if "**" in kwargs else kwargs


def _call_choice(
    machine: Machine, callee: Choice, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    options = [
        option for option in callee.options if not (isinstance(option, Const) and option.value is None)
    ]
    result: Value | None = None
    with machine.doubting(len(options) > 1):
        for option in options:
            try:
                value = call_value(machine, option, args, kwargs, frame, node)
            except Raised:
                continue
            result = value if result is None else join(result, value)
    return result if result is not None else Unknown("a call of None")


def _super(machine: Machine, node: ast.Call, frame: Frame) -> Value:
    home: Frame | None = frame
    while home is not None and (
        home.function is None or home.function.owner is None or home.receiver is None
    ):
        home = home.closure
    if home is None or home.function is None or home.receiver is None:
        return Unknown("super() outside of a method")
    owner = home.function.owner
    if len(node.args) == 2:
        named = evaluate(machine, node.args[0], frame)
        if isinstance(named, ClassValue):
            owner = named
    assert owner is not None
    return Super(home.receiver, owner)


# --- functions of the workspace ------------------------------------------------------------------------------------------


def call_function(
    machine: Machine,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame | None,
    node: ast.AST,
) -> Value:
    """Interpret a function's body for these arguments; Unknown where it nests or recurs too deeply."""
    if len(machine.active) >= _MAX_DEPTH or _recurs(machine, function):
        return Unknown(f"`{function.name}` calls itself too deeply")
    opaque = _opaque_result(machine, function)
    if opaque is not None:
        return opaque
    if function.scope.library and not _worth_following(machine, function):
        return Unknown(f"`{function.name}` of an installed package is not followed here")
    machine.step()
    inner = Frame(function.scope, function.chunk, Locals(), function, function.closure)
    inner.locals = _bind(machine, function, args, kwargs, inner)
    if isinstance(function.node, ast.Lambda):
        body = function.node.body
        return _in_frame(machine, function, frame, node, lambda: evaluate(machine, body, inner))
    parameters = [*function.node.args.posonlyargs, *function.node.args.args]
    if parameters and function.owner is not None and "staticmethod" not in function.decorators:
        inner.receiver = inner.locals.get(parameters[0].arg)
    if _yields(function.node):
        inner.yields = []
    key = _memo_key(machine, function, inner.locals)
    if key is not None:
        known: _Remembered | None = machine.memo.get(key)
        if known is not None and known.doubt <= machine.doubt:
            return known.replay(machine)
    mark, first = machine.journal.mark(), len(machine.log)
    given = dict(inner.locals) if key is not None else {}
    result = _in_frame(machine, function, frame, node, lambda: _run_body(machine, function, inner))
    if key is not None and _is_pure(machine, mark, given):
        machine.memo[key] = _Remembered(
            result, tuple(machine.log[first:]), machine.doubt, machine.entry, given
        )
    return result


def _recurs(machine: Machine, function: Function) -> bool:
    times = 0
    for other in machine.active:
        if other.node is function.node:
            times += 1
    return times >= _MAX_RECURSION


def _opaque_result(machine: Machine, function: Function) -> Value | None:
    """What a custom operator returns, by its annotation: tracing never looks into its body. None for other functions."""
    if not any(name.rpartition(".")[2] in _OPERATOR_DECORATORS for name in function.decorators) or isinstance(
        function.node, ast.Lambda
    ):
        return None
    from exportlens.inference.parameters import from_annotation

    returns = function.node.returns
    made = from_annotation(machine, function, returns, "") if returns is not None else None
    return _fresh(made) if made is not None else Unknown(f"the custom operator `{function.name}`")


def _fresh(value: Value) -> Value:
    if isinstance(value, Tensor):
        return replace(value, origin="fresh", name="")
    if isinstance(value, Sequence) and value.items is not None:
        return Sequence(value.kind, [_fresh(item) for item in value.items])
    return value


def _worth_following(machine: Machine, function: Function) -> bool:
    """Whether the body of an installed package's function may tell something of tensors, within a bounded effort per entry point."""
    if machine.tracing:
        machine.library_calls += 1
        return machine.library_calls <= _MAX_LIBRARY_CALLS
    return machine.decorating or function.name in ("__init__", "__post_init__")


@dataclass(slots=True)
class _Remembered:
    """A call that was followed once: its result, the places that it passed, and the arguments (kept alive, as the key holds their ids)."""

    result: Value
    places: tuple[Place, ...]
    doubt: int
    entry: str | None
    arguments: dict[str, Value]

    def replay(self, machine: Machine) -> Value:
        """The result; the places are noted again where another entry point comes by."""
        if self.entry != machine.entry:
            for place in self.places:
                machine.notice(replace(place, site=replace(place.site, entry=machine.entry)))
        return self.result


def _is_pure(machine: Machine, mark: int, given: dict[str, Value]) -> bool:
    """Whether a call wrote to nothing that it was given: then its result is all that it did."""
    written = machine.journal.written_since(mark)
    if not written:
        return True
    for value in given.values():
        owned = [value, *(value.attributes.values() if isinstance(value, Instance) else [])]
        for item in owned:
            if id(item) in written:
                return False
            if isinstance(item, Instance) and id(item.attributes) in written:
                return False
            if isinstance(item, Mapping_) and id(item.items) in written:
                return False
    return True


def _in_frame(machine: Machine, function: Function, frame: Frame | None, node: ast.AST, run: Any) -> Value:
    if frame is not None:
        machine.trail.append((frame.scope, frame.chunk, node))
    machine.active.append(function)
    try:
        return run()  # type: ignore[no-any-return]
    finally:
        machine.active.pop()
        if frame is not None:
            machine.trail.pop()


def _run_body(machine: Machine, function: Function, inner: Frame) -> Value:
    from exportlens.inference.statements import run_block

    assert not isinstance(function.node, ast.Lambda)
    journal = machine.journal
    inner.mark = mark = journal.mark()
    falls = False
    error: Raised | None = None
    try:
        falls = run_block(machine, function.node.body, inner)
    except Raised as raised:
        error = raised
    if inner.yields is not None:
        items = inner.yields
        exact = not any(isinstance(child, (ast.For, ast.While, ast.If)) for child in ast.walk(function.node))
        if exact:
            return Sequence("generator", items)
        cover = items[0] if items else Unknown("element of a generator")
        for item in items[1:]:
            cover = join(cover, item)
        return Sequence("generator", None, cover)
    if len(machine.active) == 1:
        machine.returned = [(value, where) for value, _, where in inner.returns]
    if not inner.returns:
        if error is not None:
            raise error
        return Const(None)
    result = inner.returns[0][0]
    for value, _, _ in inner.returns[1:]:
        result = join(result, value)
    if falls:
        result = join(result, Const(None))
    paths = [changes for _, changes, _ in inner.returns if changes is not None]
    if paths:
        if falls or inner.returns[-1][1] is None:
            paths.append(journal.changes_since(mark))
        journal.roll_back(mark)
        journal.apply([_without(changes, inner.locals) for changes in paths])
    return result


def _without(changes: Any, local: dict[str, Value]) -> Any:
    """Changes that outlive the call."""
    return {slot: change for slot, change in changes.items() if change[0] is not local}


def _yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is a generator; kept on the node, as the tree never changes."""
    known: bool | None = getattr(node, "yields", None)
    if known is None:
        known = _own_yields(node.body)
        node.yields = known  # type: ignore[union-attr]
    return known


def _own_yields(body: list[ast.stmt]) -> bool:
    """Whether a body yields by itself, not in a function within it."""
    todo: list[ast.AST] = list(body)
    for node in todo:
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(ast.iter_child_nodes(node))
    return False


def _bind(
    machine: Machine, function: Function, args: list[Value], kwargs: dict[str, Value], inner: Frame
) -> dict[str, Value]:
    """Local variables at the start of a call."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    bound = Locals()
    spread = next((index for index, value in enumerate(args) if isinstance(value, _Spread)), None)
    rest: Value | None = None
    if spread is not None:
        rest = args[spread].element  # type: ignore[attr-defined]
        args = [*args[:spread], *[value for value in args[spread + 1 :] if False]]
    for parameter, value in zip(positional, args, strict=False):
        bound[parameter.arg] = value
    extra = args[len(positional) :]
    if spec.vararg is not None:
        bound[spec.vararg.arg] = (
            Sequence("tuple", list(extra)) if rest is None else Sequence("tuple", None, rest)
        )
    names = {parameter.arg for parameter in (*spec.args, *spec.kwonlyargs)}
    others: dict[Any, Value] = {}
    open_kwargs = kwargs.get("**")
    for keyword, value in kwargs.items():
        if keyword == "**":
            continue
        if keyword in names:
            bound[keyword] = value
        else:
            others[keyword] = value
    if spec.kwarg is not None:
        bound[spec.kwarg.arg] = Mapping_(others, open_kwargs)
    offset = len(positional) - len(function.defaults)
    for index, parameter in enumerate(positional):
        if parameter.arg in bound:
            continue
        if rest is not None and index < len(positional):
            bound[parameter.arg] = rest
        elif index >= offset:
            default = function.defaults[index - offset]
            bound[parameter.arg] = taken_up(machine, default) if default is not None else Unknown("a default")
        else:
            bound[parameter.arg] = Unknown(f"the argument `{parameter.arg}` is not given")
    for parameter, default in zip(spec.kwonlyargs, function.kw_defaults, strict=False):
        if parameter.arg not in bound:
            bound[parameter.arg] = (
                taken_up(machine, default)
                if default is not None
                else Unknown(f"the argument `{parameter.arg}` is not given")
            )
    del inner
    return bound


def _memo_key(machine: Machine, function: Function, local: dict[str, Value]) -> Any:
    """A key under which the same call gives the same result and the same places; None where that is not sure."""
    if function.closure is not None:
        return None
    parts: list[Any] = [id(function.node), machine.version, machine.tracing]
    for name, value in local.items():
        key = _key(value, 0)
        if key is None:
            return None
        parts.append((name, key))
    return tuple(parts)


def _key(value: Value, depth: int) -> Any:
    if isinstance(value, Tensor):
        # Which storage it is matters to no result.
        return ("tensor", value.origin, value.name, value.dtype, value.rank, value.unbacked)
    if isinstance(value, (Const, Static, Shape, TensorScalar, Array, Unknown)):
        return value
    if isinstance(value, Instance):
        return value.fingerprint if value.fingerprint is not None else (id(value), value.stamp)
    if isinstance(value, (Function, ClassValue, Native)):
        return id(value)
    if isinstance(value, Named):
        return value.name
    if depth > 3:
        return None
    if isinstance(value, Sequence):
        if value.items is None:
            element = None if value.element is None else _key(value.element, depth + 1)
            return None if element is None else (value.kind, "*", element)
        if len(value.items) > 16:
            return None
        keys = [_key(item, depth + 1) for item in value.items]
        return None if None in keys else (value.kind, *keys)
    if isinstance(value, Mapping_):
        if len(value.items) > 16:
            return None
        rest = None if value.rest is None else _key(value.rest, depth + 1)
        pairs = [(key, _key(item, depth + 1)) for key, item in value.items.items()]
        if any(item is None for _, item in pairs) or (rest is None and value.rest is not None):
            return None
        return ("dict", tuple(pairs), rest)
    if isinstance(value, Choice):
        keys = [_key(option, depth + 1) for option in value.options]
        return None if None in keys else ("choice", *keys)
    if isinstance(value, Bound):
        receiver = _key(value.receiver, depth + 1)
        return None if receiver is None else (receiver, value.name)
    return None


def key_of(value: Value) -> Any:
    """What makes two values interchangeable; None where that cannot be told."""
    return _key(value, 0)


def fingerprint(maker: Any, args: list[Value], kwargs: Mapping[str, Value]) -> Any:
    """What tells apart the objects that one constructor makes; None where the arguments have no key."""
    keys = [_key(value, 0) for value in args]
    named = [(name, _key(value, 0)) for name, value in kwargs.items()]
    if None in keys or any(key is None for _, key in named):
        return None
    return (maker, *keys, *named)


# --- bound methods, objects, classes ---------------------------------------------------------------------------------------


def _call_bound(
    machine: Machine, callee: Bound, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    receiver, function = callee.receiver, callee.function
    if isinstance(function, Function):
        return call_function(machine, function, [receiver, *args], kwargs, frame, node)
    plain, closed = _plain(args), _closed(kwargs)
    if isinstance(receiver, Tensor):
        result = call_tensor_method(machine, receiver, callee.name, plain, closed, frame, node)
        _call_place(machine, "torch.Tensor." + callee.name, receiver, plain, closed, result, frame, node)
        return result
    if isinstance(receiver, Super):
        return _call_super(machine, receiver, callee, plain, closed, frame, node)
    if isinstance(receiver, (Sequence, Mapping_, Const)) or (
        isinstance(receiver, Static) and receiver.type != ""
    ):
        if isinstance(receiver, Sequence) and receiver.type_name == "torch.Size" and callee.name == "numel":
            return Shape()
        return call_container_method(machine, receiver, callee.name, plain, closed, frame, node)
    if isinstance(receiver, Array):
        result = array_method(machine, receiver, callee.name, plain, frame, node)
        _call_place(machine, "numpy.ndarray." + callee.name, receiver, plain, closed, result, frame, node)
        return result
    if (
        isinstance(receiver, ClassValue)
        and isinstance(function, Named)
        and function.name == "torch.autograd.Function.apply"
    ):
        return _apply_autograd(machine, receiver, args, kwargs, frame, node)
    if isinstance(receiver, (TensorScalar, Shape)):
        if callee.name in ("item", "bit_length", "is_integer", "as_integer_ratio", "conjugate"):
            return receiver
        return Unknown(f"the method `{callee.name}` of a number")
    if isinstance(receiver, Named):
        return Static("bool")
    return Unknown(f"the method `{callee.name}`")


def _of_an_argument(node: ast.AST) -> bool:
    """Whether a method is called on something that starts at a local name, not at the model itself (whose arrays and configuration have `.item()` too)."""
    root = node.func if isinstance(node, ast.Call) else node
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
        root = root.func if isinstance(root, ast.Call) else root.value
    return isinstance(root, ast.Name) and root.id not in ("self", "np", "numpy")


# Methods that only tensors have: what they are called on was one.
_ONLY_TENSORS = frozenset(
    {
        "unsqueeze", "detach", "cuda", "expand_as", "view_as", "masked_fill", "masked_fill_", "scatter_add", "scatter_add_", "index_select",
        "softmax", "log_softmax", "sigmoid", "bmm", "matmul", "new_zeros", "new_ones", "new_full", "new_tensor", "type_as", "is_floating_point",
        "requires_grad_", "contiguous", "repeat_interleave", "masked_select", "addmm", "baddbmm", "gather", "unbind", "narrow", "mul_", "add_", "div_",
        "clamp_", "clamp", "logsumexp", "unfold", "index_fill", "index_copy", "chunk", "movedim", "float", "long",
    }
)  # fmt: skip


def _call_super(
    machine: Machine,
    receiver: Super,
    callee: Bound,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    name = callee.name
    instance = receiver.instance
    base = callee.function.name.rpartition(".")[0] if isinstance(callee.function, Named) else ""
    if isinstance(instance, Instance):
        if name == "__init__":
            if is_module_base(base):
                initialize(machine, instance, base, args, kwargs)
            return Const(None)
        if name in ("__setattr__", "__delattr__") and len(args) == 2 and isinstance(args[0], Const):
            machine.journal.write(instance.attributes, args[0].value, args[1])
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


def _apply_autograd(
    machine: Machine,
    cls: ClassValue,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    """`MyFunction.apply(...)`: its forward, with a context object in front."""
    forward, _, _ = class_attribute(cls, "forward")
    result: Value = Unknown("an autograd.Function")
    if isinstance(forward, Function):
        setup, _, _ = class_attribute(cls, "setup_context")
        context = Instance(Named("torch.autograd.function.FunctionCtx"), open=True)
        first = [] if isinstance(setup, Function) else [context]
        result = call_function(machine, forward, [*first, *args], kwargs, frame, node)
    _call_place(
        machine, "torch.autograd.Function.apply", cls, _plain(args), _closed(kwargs), result, frame, node
    )
    return result


def _call_instance(
    machine: Machine,
    instance: Instance,
    args: list[Value],
    kwargs: dict[str, Value],
    frame: Frame,
    node: ast.AST,
) -> Value:
    call, _, hidden = class_attribute(instance.cls, "__call__")
    if isinstance(call, Function) and not hidden:
        return call_function(machine, call, [instance, *args], kwargs, frame, node)
    forward = instance.attributes.get("forward") or class_attribute(instance.cls, "forward")[0]
    if isinstance(forward, Function):
        given = args if "forward" in instance.attributes else [instance, *args]
        return call_function(machine, forward, given, kwargs, frame, node)
    if isinstance(forward, (Bound, Partial, Native)):
        return call_value(machine, forward, args, kwargs, frame, node)
    shaped = call_layer(instance, _plain(args))
    if shaped is not None:
        return shaped
    container = container_kind(instance.cls)
    for base in class_order(instance.cls):
        if isinstance(base, Named) and (
            knowledge.lookup_module(base.name) is not None or container is not None
        ):
            name = container or base.name
            plain, closed = _plain(args), _closed(kwargs)
            result = call_external_module(machine, instance, name, plain, closed, frame, node)
            _call_place(machine, name, instance, plain, closed, result, frame, node)
            return result
    made = machine.tracing and any(map(_is_made, _plain(args)))
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
        bound = _bind_fields(fields, _plain(args), kwargs)
        return Sequence("tuple", list(bound.values()), None, cls.name, tuple(bound))
    instance = Instance(cls)
    instance.open = any(isinstance(base, Named) and not _harmless(base.name) for base in order)
    init, made_of_fields = _constructor(order)
    if made_of_fields:
        bound = _bind_fields(_fields(cls), _plain(args), kwargs)
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
        if base_name is not None:
            initialize(machine, instance, base_name, _plain(args), _closed(kwargs))
        for base in order:
            if isinstance(base, Named) and base.name.rpartition(".")[2] in (
                "dict",
                "OrderedDict",
                "ModelOutput",
                "UserDict",
            ):
                instance.attributes["__items__"] = Mapping_(
                    dict(_closed(kwargs).items()), Unknown("an entry") if args else None
                )
            elif isinstance(base, Named) and base.name.rpartition(".")[2] in ("list", "tuple"):
                instance.attributes["__items__"] = Sequence("list", None, Unknown("an element"))
    return instance


def _harmless(name: str) -> bool:
    from exportlens.inference.objects import is_known_base

    return is_known_base(name)


_RECORDS = frozenset({"OrderedDict", "dict"})
_FIELD_DECORATORS = frozenset({"dataclass", "define", "attrs", "frozen"})


def _constructor(order: list[Value]) -> tuple[Function | None, bool]:
    """The `__init__` that makes an object, or whether one is generated from the fields: the nearest class that has either decides."""
    from exportlens.inference.objects import dotted

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


# --- external callables ----------------------------------------------------------------------------------------------------


def _call_external(
    machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    if name.rpartition(".")[2] in ("export", "draft_export", "_export", "export_for_training") and isinstance(
        node, ast.Call
    ):
        canonical = "torch.export.export" if name in ("torch.export", "torch.export.export") else name
        if canonical in EXPORT_CALLS:
            return _export_place(machine, args, kwargs, frame, node)
    native = NATIVES.get(name)
    result = (
        native(machine, args, kwargs, frame, node)
        if native is not None
        else sized(machine, name, args, _external_result(machine, name, args, kwargs, frame, node))
    )
    _call_place(machine, name, None, args, kwargs, result, frame, node)
    return result


def _external_result(
    machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    if name.startswith("torch.Tensor.") and args and isinstance(args[0], Tensor):
        return call_tensor_method(machine, args[0], name.rpartition(".")[2], args[1:], kwargs, frame, node)
    made = make_tensor(machine, name, args) or call_torch(machine, name, args, kwargs, frame, node)
    if made is not None:
        return made
    thing = make_object(name, args, kwargs)
    if thing is not None:
        return thing
    if is_module_base(name):
        from exportlens.inference.modules import construct

        module = construct(machine, name, args, kwargs)
        module.fingerprint = fingerprint(name, args, kwargs)
        module.stamp = 0
        return module
    top = name.partition(".")[0]
    if top == "einops":
        shaped = call_einops(machine, name, args, kwargs, frame, node)
        if shaped is not None:
            return shaped
    if top == "numpy":
        return call_numpy(machine, name, args, kwargs, frame, node)
    if top == "math":
        return _call_math(machine, name, args, frame, node)
    effect = knowledge.effect_of(name)
    if effect is not None:
        return (
            Static(effect.returns)
            if effect.returns in ("int", "float", "str", "bool")
            else Const(None)
            if effect.returns == "none"
            else Static()
        )
    if top == "builtins" and name.endswith(("Error", "Exception", "Warning", "Iteration")):
        return Instance(Named(name))
    if name.startswith(("torch.autograd.", "torch.cuda.", "torch.backends.")):
        return Unknown(f"calls `{name}`")
    return Unknown(f"calls `{name}`")


def _call_math(machine: Machine, name: str, args: list[Value], frame: Frame, node: ast.AST) -> Value:
    import math

    from exportlens.inference.operators import fold

    function = getattr(math, name.partition(".")[2], None)
    if function is not None and args and all(isinstance(value, Const) for value in args):
        return fold(function, *(value.value for value in args if isinstance(value, Const)))
    kind = "int" if name in ("math.floor", "math.ceil", "math.trunc") else "float"
    for value in args:
        if isinstance(value, Tensor):
            if from_data(value):
                if machine.emits(Conversion):
                    machine.notice(Conversion(machine.site(frame), node, value, "float"))
                return TensorScalar(kind, value.name or "a tensor")
            return Static(kind)
        if isinstance(value, TensorScalar):
            return TensorScalar(kind, value.origin)
        if isinstance(value, Shape):
            return Shape(value.unbacked, value.input, value.dim, value.origin, kind)
        if isinstance(value, Unknown):
            return Unknown(f"calls `{name}`")
    return Static(kind)


def _call_place(
    machine: Machine,
    name: str,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    result: Value,
    frame: Frame,
    node: ast.AST,
    callee: Value | None = None,
) -> None:
    if machine.tracing and not machine.quiet and machine.observer.wants_call(name):
        place = Call(machine.site(frame), node, name, receiver, args, kwargs, result, callee)
        if name.startswith(("random.", "numpy.random.")):
            variable = _held_draws(machine, frame).get(id(node))
            if variable is not None:
                # Often read in training only: `p = random.random()`, then `if self.training and p < self.layerdrop`.
                frame.drawn = {**(frame.drawn or {}), variable: place}
                place = replace(place, used=False)
            elif machine.draws is not None:
                machine.draws.append(place)
                place = replace(place, used=False)
        machine.notice(place)


def _held_draws(machine: Machine, frame: Frame) -> dict[int, str]:
    """The calls of this function whose numbers only go into a variable, by the id of their node."""
    if frame.function is None:
        return {}
    key = ("held draws", id(frame.function.node))
    known: dict[int, str] | None = machine.memo.get(key)
    if known is None:
        known = machine.memo[key] = {}
        for statement in ast.walk(frame.function.node):
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                continue
            parts: list[ast.expr] = [statement.value]
            while parts:
                part = parts.pop()
                if isinstance(part, ast.Call):
                    known[id(part)] = statement.targets[0].id
                    if isinstance(part.func, ast.Name) and part.func.id in _NUMBER_OF_NUMBERS:
                        parts += part.args
                elif isinstance(part, ast.Compare):
                    parts += [part.left, *part.comparators]
                elif isinstance(part, ast.UnaryOp):
                    parts.append(part.operand)
                elif isinstance(part, ast.BinOp):
                    parts += [part.left, part.right]
                elif isinstance(part, ast.IfExp):
                    parts += [part.body, part.orelse]
    return known


_NUMBER_OF_NUMBERS = frozenset({"abs", "float", "int", "max", "min", "round"})


_EXPORT_PARAMETERS = ("mod", "args", "kwargs")


def _export_place(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.Call
) -> Value:
    arguments = dict(zip(_EXPORT_PARAMETERS, args, strict=False)) | kwargs
    nodes = dict(zip(_EXPORT_PARAMETERS, node.args, strict=False))
    nodes |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    model = arguments.get("mod", Unknown("no model given"))
    place = ExportCall(machine.site(frame), node, model, arguments, nodes)
    if machine.observer.wants(ExportCall):
        machine.notice(place)
    return program_of(place)
