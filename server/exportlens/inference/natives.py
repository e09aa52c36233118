"""Natives: builtins and a few library functions that the interpreter answers itself."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.attribute_writes import set_attribute, set_past_class
from exportlens.inference.attributes import get_attribute
from exportlens.inference.builtin_calls import BUILTINS, Run, constant, first, make_sequence, second
from exportlens.inference.classes import class_attribute, class_order
from exportlens.inference.collection_calls import COLLECTIONS
from exportlens.inference.dynamic import make_dim
from exportlens.inference.iteration import elements_of
from exportlens.inference.lattice import join
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.module_methods import held_somewhere, hold_somewhere
from exportlens.inference.type_tests import TYPE_TESTS
from exportlens.inference.values import (
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Named,
    Native,
    Partial,
    Sequence,
    Slice,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
    options,
)


def _progress_bar(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """Going through a progress bar is going through what it was given."""
    iterable = args[0] if args else kwargs.get("iterable")
    if iterable is None:
        return Unknown("a progress bar over nothing")
    items, element = elements_of(machine, iterable, frame, node)
    return Sequence("generator", items, None if items is not None else element)


def _getattr(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    if len(args) < 2:
        return Unknown("getattr()")
    if not isinstance(args[1], Const) or not isinstance(args[1].value, str):
        held = held_somewhere(args[0]) if isinstance(args[0], Instance) else None
        return held if held is not None else Unknown("getattr with a name that is not known")
    value = get_attribute(machine, args[0], args[1].value, frame, node)
    if len(args) == 3 and isinstance(value, Unknown):
        if isinstance(args[0], Instance) and not args[0].open and "is not set" in value.why:
            return args[2]
        return value
    return value


def _setattr(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    if len(args) == 3 and isinstance(args[1], Const) and isinstance(args[1].value, str):
        set_attribute(machine, args[0], args[1].value, args[2], frame, node)
    elif len(args) == 3 and isinstance(args[0], Function):
        set_attribute(
            machine, args[0], "", args[2], frame, node
        )  # functions hold nothing: whatever it is called
    elif len(args) == 3 and isinstance(args[0], Instance):
        hold_somewhere(machine, args[0], args[2])
    return Const(None)


def _setattr_past_class(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    if len(args) == 3 and isinstance(args[0], Instance) and isinstance(args[1], Const):
        set_past_class(machine, args[0], str(args[1].value), args[2], frame, node)
        return Const(None)
    return _setattr(machine, args, kwargs, frame, node)


def _hasattr(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    if len(args) != 2 or not isinstance(args[1], Const):
        return Static("bool")
    owner, name = args[0], str(args[1].value)
    if isinstance(owner, Instance):
        if name in owner.attributes or class_attribute(owner.cls, name)[0] is not None:
            return Const(True)
        value = get_attribute(machine, owner, name, frame, node)
        if not isinstance(value, Unknown):
            return Const(True)
        return Const(False) if not owner.open and "is not set" in value.why else Static("bool")
    if isinstance(owner, Tensor):
        return Const(not isinstance(get_attribute(machine, owner, name, frame, node), Unknown))
    if isinstance(owner, (Const, Sequence, Mapping_)):
        kind: type = (
            type(owner.value)
            if isinstance(owner, Const)
            else dict
            if isinstance(owner, Mapping_)
            else {"list": list, "set": set}.get(owner.kind, tuple)
        )
        return Const(hasattr(kind, name))
    return Static("bool")


def _partial(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, frame, node
    return Partial(args[0], tuple(args[1:]), dict(kwargs)) if args else Unknown("partial()")


def _parameter(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del frame, node
    value = args[0] if args else kwargs.get("data")
    known = value if isinstance(value, Tensor) else Tensor()
    asked = args[1] if len(args) > 1 else kwargs.get("requires_grad", Const(True))
    gradient = True if asked == Const(True) else None
    return Tensor("parameter", known.name, known.dtype, known.rank, False, machine.new_root(), gradient)


def _deepcopy(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs, frame, node
    value = args[0] if args else Unknown("deepcopy()")
    return _copy(value, machine.tracing, 0)


def _copy(value: Value, traced: bool, depth: int) -> Value:
    if depth > 4:
        return value
    if isinstance(value, Sequence):
        return Sequence(
            value.kind,
            None if value.items is None else [_copy(item, traced, depth + 1) for item in value.items],
            value.element,
            value.type_name,
            value.fields,
        )
    if isinstance(value, Mapping_):
        return Mapping_(
            {key: _copy(item, traced, depth + 1) for key, item in value.items.items()}, value.rest, value.kind
        )
    if isinstance(value, Instance):
        return Instance(
            value.cls,
            {key: _copy(item, traced, depth + 1) for key, item in value.attributes.items()},
            value.open,
            value.name,
            value.arguments,
            traced=traced,
        )
    return value


def _size(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    made = make_sequence("tuple")(machine, args, kwargs, frame, node)
    assert isinstance(made, Sequence)
    return Sequence("tuple", made.items, made.element, "torch.Size")


def _checkpoint(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    rest = {
        key: value
        for key, value in kwargs.items()
        if key not in ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug")
    }
    return call_value(machine, args[0], args[1:], rest, frame, node) if args else Unknown("checkpoint()")


def _cond(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    given = dict(zip(("pred", "true_fn", "false_fn", "operands"), args, strict=False)) | kwargs
    operands = given.get("operands")
    items = elements_of(machine, operands, frame, node)[0] if operands is not None else []
    results: list[Value] = []
    for name in ("true_fn", "false_fn"):
        if name in given:
            try:
                results.append(call_value(machine, given[name], list(items or []), {}, frame, node))
            except Raised:
                continue  # Only this branch ends here; a rule says what torch thinks of it.
    return _either(*results) if len(results) == 2 else Unknown("torch.cond")


def _either(left: Value, right: Value) -> Value:
    """What torch.cond gives: tensors of its own, and where one branch gives a tensor so does the other."""
    if (
        isinstance(left, Sequence)
        and isinstance(right, Sequence)
        and left.items
        and len(left.items) == len(right.items or ())
    ):
        return Sequence(
            left.kind, [_either(a, b) for a, b in zip(left.items, right.items or (), strict=True)]
        )
    given = [*options(left), *options(right)]
    if left != right and all(isinstance(each, Const) and type(each.value) is int for each in given):
        return TensorScalar("int")
    tensors = [replace(each, origin="fresh", name="", root=0) for each in given if isinstance(each, Tensor)]
    if not tensors or not all(isinstance(each, (Tensor, Unknown)) for each in given):
        return join(left, right)
    if len(tensors) < len(given):
        return Tensor("fresh", dtype=tensors[0].dtype)
    result: Value = tensors[0]
    for each in tensors[1:]:
        result = join(result, each)
    opened = {each.open_dim for each in tensors if each.unbacked}
    if isinstance(result, Tensor) and opened:
        # Sizes that differ between the branches are open behind them: a dimension that is so in one is so in the result.
        certain = opened - {None}
        result = replace(result, unbacked=True, open_dim=certain.pop() if len(certain) == 1 else None)
    return result


def _while_loop(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    given = dict(zip(("cond_fn", "body_fn", "carried_inputs"), args, strict=False)) | kwargs
    carried = given.get("carried_inputs")
    items = elements_of(machine, carried, frame, node)[0] if carried is not None else None
    if items is None or "body_fn" not in given:
        return Unknown("while_loop")
    rounds = [_carried(each) for each in items]
    call_value(machine, given["cond_fn"], list(rounds), {}, frame, node)
    return call_value(machine, given["body_fn"], list(rounds), {}, frame, node)


def _carried(value: Value) -> Value:
    """What a carried value is inside of the loop: of an int no round says which one it is."""
    counts = isinstance(value, Const) and type(value.value) is int
    return TensorScalar("int", "an int that while_loop carries") if counts else value


def _tree_map(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    if len(args) < 2 or kwargs:
        return Unknown("tree_map")
    return _mapped(machine, args[0], args[1:], frame, node)


def _mapped(machine: Machine, function: Value, trees: list[Value], frame: Frame, node: ast.AST) -> Value:
    """What `function` gives for the leaves of `trees`, in their structure."""
    from exportlens.inference.calls import call_value

    first = trees[0]
    if not isinstance(first, Sequence):
        return call_value(machine, function, trees, {}, frame, node)
    columns: list[list[Value]] = []
    for tree in trees:
        if not isinstance(tree, Sequence) or tree.items is None or len(tree.items) != len(first.items or ()):
            return Unknown("tree_map")
        columns.append(list(tree.items))
    return Sequence(
        first.kind,
        [_mapped(machine, function, list(leaves), frame, node) for leaves in zip(*columns, strict=True)],
    )


def _import_module(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.names import module_value

    del machine, kwargs, node
    if args and isinstance(args[0], Const) and isinstance(args[0].value, str):
        return module_value(args[0].value, frame.scope)
    return Unknown("a module imported by a name that is not known")


def _import_optional(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    return Static("bool")


def _product(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.operators import binary

    del kwargs
    items, element = elements_of(machine, args[0], frame, node)
    result: Value = Const(1)
    for value in items if items is not None else [element]:
        result = binary(machine, ast.Mult(), result, value, frame, node)
    return result if items is not None or not isinstance(result, Const) else Static("int")


def _field(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    del args
    if "default" in kwargs:
        return kwargs["default"]
    if "default_factory" in kwargs:
        return call_value(machine, kwargs["default_factory"], [], {}, frame, node)
    return Unknown("a field without default")


def _check(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    return Const(None)


def _device(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    if args and isinstance(args[0], Const) and isinstance(args[0].value, str):
        return Named("device:" + args[0].value)
    return args[0] if args and isinstance(args[0], Named) else Static("device")


def _pack(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    return Instance(Named("torch.nn.utils.rnn.PackedSequence"), open=True)


def _replaced(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`dataclasses.replace`: another object of the same class."""
    del frame, node
    given = args[0] if args else None
    if not isinstance(given, Instance):
        return Unknown("a copy of something unknown")
    return Instance(given.cls, {**given.attributes, **kwargs}, given.open, traced=machine.tracing)


def _unpack(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    return Sequence("tuple", [Tensor(), Tensor(dtype="int64", rank=1)])


def _integer_info(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`torch.iinfo(dtype)`: the bounds of a signed integer type follow from its width."""
    del machine, kwargs, frame, node
    dtype = args[0].name.rpartition(".")[2] if args and isinstance(args[0], Named) else ""
    width = {"int": "32", "long": "64", "short": "16"}.get(dtype, dtype.removeprefix("int"))
    if not width.isdigit():
        return Unknown("torch.iinfo of a type that is not known")
    top = 2 ** (int(width) - 1)
    bounds: dict[str, Value] = {"max": Const(top - 1), "min": Const(-top), "bits": Const(int(width))}
    return Instance(Named("torch.iinfo"), bounds)


def _slice(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    parts: list[Value | None] = [
        None if isinstance(part, Const) and part.value is None else part
        for part in ([None, *args] if len(args) == 1 else [*args, None, None][:3])
    ]
    return Slice(parts[0], parts[1], parts[2] if len(parts) > 2 else None)


def _issubclass(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    if len(args) == 2 and isinstance(args[0], ClassValue):
        asked = args[1].items if isinstance(args[1], Sequence) and args[1].items else [args[1]]
        if any(base is kind for base in class_order(args[0]) for kind in asked):
            return Const(True)
    return Static("bool")


def _buffer(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del frame, node
    value = args[0] if args else kwargs.get("data", Unknown("an empty buffer"))
    if machine.tracing or not isinstance(value, (Tensor, Unknown)):
        return value
    return replace(value, origin="buffer", name="") if isinstance(value, Tensor) else Tensor("buffer")


def _property(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, frame, node
    getter = args[0] if args else kwargs.get("fget")
    setter = args[1] if len(args) > 1 else kwargs.get("fset")
    if not isinstance(getter, Function):
        return Unknown("a property whose getter is not followed")
    names = (*getter.decorators, "property")
    return replace(getter, decorators=names, setter=setter if isinstance(setter, Function) else None)


def _operator(op: ast.operator) -> Run:
    def run(
        machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> Value:
        from exportlens.inference.operators import binary

        del kwargs
        return binary(machine, op, args[0], args[1], frame, node) if len(args) == 2 else Unknown("operator")

    return run


def _float_info(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, args, kwargs, frame, node
    names = ("min", "max", "eps", "tiny", "smallest_normal", "resolution")
    return Instance(Named("torch.finfo"), {name: Static("float") for name in names}, open=True)


NATIVES: dict[str, Run] = {
    **BUILTINS,
    **TYPE_TESTS,
    **COLLECTIONS,
    "builtins.slice": _slice,
    "builtins.property": _property,
    "builtins.issubclass": _issubclass,
    "dataclasses.replace": _replaced,
    "operator.mul": _operator(ast.Mult()),
    "operator.add": _operator(ast.Add()),
    "torch.finfo": _float_info,
    "torch._assert": _check,
    "torch.iinfo": _integer_info,
    "torch.export.Dim": make_dim,
    "torch.nn.utils.rnn.pack_padded_sequence": _pack,
    "torch.nn.utils.rnn.pack_sequence": _pack,
    "torch.nn.utils.rnn.pad_packed_sequence": _unpack,
    "torch.device": _device,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.object.__setattr__": _setattr_past_class,
    "torch.nn.Module.__setattr__": _setattr_past_class,
    "builtins.hasattr": _hasattr,
    "builtins.print": _check,
    "math.prod": _product,
    "functools.partial": _partial,
    "functools.wraps": lambda machine, args, kwargs, frame, node: Native("wraps", first),
    "typing.cast": second,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _deepcopy,
    "dataclasses.field": _field,
    "importlib.import_module": _import_module,
    "importlib.util.find_spec": _import_optional,
    "torch.overrides.has_torch_function": constant(False),
    "torch.overrides.has_torch_function_unary": constant(False),
    "torch.overrides.has_torch_function_variadic": constant(False),
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.Buffer": _buffer,
    "torch.jit.is_scripting": constant(False),
    "torch.jit.is_tracing": constant(False),
    "torch._C._get_tracing_state": constant(None),
    "torch.jit.script": first,
    "torch.jit.annotate": second,
    "torch.compile": first,
    "torch.compiler.is_compiling": constant(True),
    "torch.compiler.is_exporting": constant(True),
    "torch.compiler.is_dynamo_compiling": _import_optional,
    "torch._dynamo.is_compiling": _import_optional,
    "torch._utils.is_compiling": constant(True),
    "torch.onnx.is_in_onnx_export": constant(False),
    "torch.is_grad_enabled": _import_optional,
    "torch.cuda.is_available": constant(False),
    "torch.distributed.is_available": _import_optional,
    "torch.distributed.is_initialized": constant(False),
    "torch.Size": _size,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.cond": _cond,
    "torch._higher_order_ops.cond": _cond,
    "torch._higher_order_ops.while_loop": _while_loop,
    "torch._higher_order_ops.while_loop.while_loop": _while_loop,
    "torch.utils._pytree.tree_map": _tree_map,
    "torch._check": _check,
    "torch._check_is_size": _check,
    "torch._assert_async": _check,
    "torch.autograd.Variable": first,
    "torch.autograd.variable.Variable": first,
}
