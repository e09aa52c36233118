"""Calls: functions followed, objects made, external callables answered from knowledge."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference import knowledge
from exportlens.inference.autocasting import make_context
from exportlens.inference.classes import is_module_base
from exportlens.inference.construction import apply_autograd, call_instance, call_super, instantiate
from exportlens.inference.containers import call_container_method
from exportlens.inference.dynamic import program_of, sized
from exportlens.inference.einops import call_einops
from exportlens.inference.expressions import evaluate
from exportlens.inference.functions import Spread, call_function, closed_items, fingerprint, plain_items
from exportlens.inference.gradient_hooks import GRADIENT_HOOKS
from exportlens.inference.iteration import elements_of
from exportlens.inference.lattice import join
from exportlens.inference.layer_calls import is_packed
from exportlens.inference.legacy import make_tensor
from exportlens.inference.library import compare_objects, make_object
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.module_methods import PARAMETERS
from exportlens.inference.modules import module_attribute
from exportlens.inference.natives import NATIVES
from exportlens.inference.numpy_calls import array_method, call_numpy
from exportlens.inference.numpy_reads import notice_made_of_held, notice_numpy, number_held
from exportlens.inference.places import Call, Conversion, ExportCall
from exportlens.inference.torch_calls import RESHAPING, call_tensor_method, call_torch, is_tensor_method
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
    options,
)

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
                args.append(Spread(element))
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


def call_value(
    machine: Machine, callee: Value, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """The value of calling `callee`. Raises Raised when the call certainly raises."""
    if isinstance(callee, Function):
        result = call_function(machine, callee, args, kwargs, frame, node)
        if callee.decorators:
            call_place(
                machine, "", None, plain_items(args), closed_items(kwargs), result, frame, node, callee
            )
        return result
    if isinstance(callee, Bound):
        return _call_bound(machine, callee, args, kwargs, frame, node)
    if isinstance(callee, Named):
        return _call_external(machine, callee.name, plain_items(args), closed_items(kwargs), frame, node)
    if isinstance(callee, ClassValue):
        return instantiate(machine, callee, args, kwargs, frame, node)
    if isinstance(callee, Instance):
        return call_instance(machine, callee, args, kwargs, frame, node)
    if isinstance(callee, Partial):
        return call_value(
            machine, callee.function, [*callee.args, *args], {**callee.kwargs, **kwargs}, frame, node
        )
    if isinstance(callee, Native):
        result = callee.run(machine, plain_items(args), closed_items(kwargs), frame, node)
        if callee.name.startswith("torch.nn.Module."):
            call_place(
                machine,
                callee.name,
                callee.owner,
                plain_items(args),
                closed_items(kwargs),
                result,
                frame,
                node,
            )
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
            machine, Tensor(), callee.method, plain_items(args), closed_items(kwargs), frame, node
        )
    if isinstance(callee, Unknown) and callee.method in _REGISTERING:
        method = _of_a_module(machine, callee.method, frame, node)
        if method is not None:
            return call_value(machine, method, args, kwargs, frame, node)
    if isinstance(callee, Unknown) and callee.method in _ONLY_MODULES:
        result = Unknown(f"a call of `{callee.method}`")
        name = f"torch.nn.Module.{callee.method}"
        call_place(machine, name, None, plain_items(args), closed_items(kwargs), result, frame, node)
        return result
    if isinstance(callee, Unknown) and callee.method in PARAMETERS and not args:
        return PARAMETERS[callee.method]()
    if machine.tracing and args and is_packed(args[0]) and isinstance(node, ast.Call):
        # Whatever class of layers `getattr(nn, kind)` is: only recurrent ones take packed sequences.
        result = Sequence("tuple", [args[0], Unknown("states of a layer")])
        if _is_part(node.func, frame):
            layer = Instance(Named("torch.nn.RNN"), open=True)
            call_place(
                machine, "torch.nn.RNN", layer, plain_items(args), closed_items(kwargs), result, frame, node
            )
        return result
    made = machine.tracing and (callee.made if isinstance(callee, Unknown) else False)
    if machine.tracing and not made and isinstance(node, ast.Call) and _is_part(node.func, frame):
        made = any(map(is_made, (*plain_items(args), *kwargs.values())))
    outside = isinstance(callee, Unknown) and callee.outside
    given = "part" if isinstance(callee, Unknown) and callee.method == "get" and callee.given else ""
    return Unknown("a call of something unknown", made=made, outside=outside, given=given)


# Nothing but a Module has methods of these names.
_ONLY_MODULES = GRADIENT_HOOKS | {"register_forward_hook", "register_forward_pre_hook"}

# What these register belongs to the Module from then on.
_REGISTERING = GRADIENT_HOOKS | {"register_buffer", "register_parameter"}


def _of_a_module(machine: Machine, method: str, frame: Frame, node: ast.AST) -> Value | None:
    """The method of an attribute of which nothing was known, but that is a Module as it has this method; None where it is no attribute of an object.

    It was a Module all the time: that is not taken back where the paths of a branch join.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    held = node.func.value
    if not isinstance(held, ast.Attribute):
        return None
    owner = evaluate(machine, held.value, frame)
    if not isinstance(owner, Instance) or not isinstance(owner.attributes.get(held.attr), Unknown):
        return None
    module = Instance(Named("torch.nn.Module"), open=True)
    owner.attributes[held.attr] = module
    return module_attribute(machine, module, method)


def is_made(value: Value) -> bool:
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


def _call_bound(
    machine: Machine, callee: Bound, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    receiver, function = callee.receiver, callee.function
    if isinstance(function, Function):
        return call_function(machine, function, [receiver, *args], kwargs, frame, node)
    plain, closed = plain_items(args), closed_items(kwargs)
    if isinstance(receiver, Tensor):
        result = call_tensor_method(machine, receiver, callee.name, plain, closed, frame, node)
        call_place(machine, "torch.Tensor." + callee.name, receiver, plain, closed, result, frame, node)
        if callee.name in RESHAPING:
            _rename(machine, node, result, frame)
        return result
    if isinstance(receiver, Super):
        return call_super(machine, receiver, callee, plain, closed, frame, node)
    if isinstance(receiver, (Sequence, Mapping_, Const)) or (
        isinstance(receiver, Static) and receiver.type != ""
    ):
        if isinstance(receiver, Sequence) and receiver.type_name == "torch.Size" and callee.name == "numel":
            return Shape()
        return call_container_method(machine, receiver, callee.name, plain, closed, frame, node)
    if isinstance(receiver, Array):
        result = array_method(machine, receiver, callee.name, plain, closed, frame, node)
        call_place(machine, "numpy.ndarray." + callee.name, receiver, plain, closed, result, frame, node)
        return result
    if (
        isinstance(receiver, ClassValue)
        and isinstance(function, Named)
        and function.name == "torch.autograd.Function.apply"
    ):
        return apply_autograd(machine, receiver, args, kwargs, frame, node)
    if isinstance(receiver, (TensorScalar, Shape)):
        if callee.name in ("item", "bit_length", "is_integer", "as_integer_ratio", "conjugate"):
            return receiver
        return Unknown(f"the method `{callee.name}` of a number")
    if isinstance(receiver, Named):
        return Static("bool")
    if isinstance(receiver, Instance) and isinstance(function, Native):
        result = function.run(machine, plain, closed, frame, node)
        call_place(machine, function.name, receiver, plain, closed, result, frame, node)
        return result
    return Unknown(f"the method `{callee.name}`")


def _rename(machine: Machine, node: ast.AST, value: Value, frame: Frame) -> None:
    """What a method made of the tensor that it was called on is what the name of that tensor stands for."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id in frame.locals:
            machine.journal.write(frame.locals, owner.id, value)


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
    call_place(machine, name, None, args, kwargs, result, frame, node)
    return result


def _external_result(
    machine: Machine, name: str, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    if name.startswith("torch.Tensor.") and args and isinstance(args[0], Tensor):
        return call_tensor_method(machine, args[0], name.rpartition(".")[2], args[1:], kwargs, frame, node)
    if name == "torch.Tensor" and args:
        notice_made_of_held(machine, args[0], frame, node)
    made = make_tensor(machine, name, args) or call_torch(machine, name, args, kwargs, frame, node)
    if made is not None:
        return made
    thing = (
        make_context(name, args, kwargs, node)
        or make_object(name, args, kwargs, machine.tracing)
        or compare_objects(name, args)
    )
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
    if name in ("bisect.bisect", "bisect.bisect_left", "bisect.bisect_right") and len(args) > 1:
        return _bisected(args)
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
    return Unknown(f"calls `{name}`", outside=top in _WITHOUT_TENSORS)


# Packages that give arrays of NumPy's, or objects of their own.
_WITHOUT_TENSORS = frozenset({"cv2", "networkx", "pandas", "PIL", "scipy", "skimage", "sklearn"})


def _bisected(args: list[Value]) -> Value:
    """The place of a number among sorted ones: it comes from data where either does."""
    listed = args[0].items or [] if isinstance(args[0], Sequence) else []
    for value in (args[1], *listed):
        if any(from_data(each) for each in options(value)):
            return TensorScalar("int", getattr(value, "origin", "") or "a tensor")
        if isinstance(value, Unknown):
            return Unknown("calls `bisect`")
    return Static("int")


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
                # The call itself is a place: only what torch has no equal of is told as a conversion.
                if name in ("math.pow", "math.fsum", "math.prod") and machine.emits(Conversion):
                    machine.notice(Conversion(machine.site(frame), node, value, "float"))
                return TensorScalar(kind, value.name or "a tensor")
            return Static(kind)
        if isinstance(value, TensorScalar):
            return TensorScalar(kind, value.origin)
        if isinstance(value, Shape):
            return Shape(value.unbacked, value.input, value.dim, value.origin, kind)
        if isinstance(value, Unknown):
            return Unknown(f"calls `{name}`")
        if kind == "int" or (isinstance(value, Array) and (value.dtype or "").startswith("int")):
            notice_numpy(machine, value, "round" if kind == "int" else "item", frame, node)
        if machine.tracing and isinstance(value, Array) and value.held:
            return number_held(value, kind)
    return Static(kind)


def call_place(
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
