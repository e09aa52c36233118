"""Attributes: read from and written to modules, classes, objects and tensors."""

from __future__ import annotations

import ast
import functools
from dataclasses import replace

from exportlens.inference import knowledge, open_dims
from exportlens.inference.classes import class_attribute, class_order
from exportlens.inference.lattice import join
from exportlens.inference.library import object_attribute
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.names import defines, external, lookup_global, module_value, taken_up
from exportlens.inference.places import (
    AttributeRead,
    UnregisteredRead,
)
from exportlens.inference.registration import unregistered
from exportlens.inference.sizes import after_call
from exportlens.inference.tensors import shape_of
from exportlens.inference.values import (
    Array,
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Member,
    ModuleRef,
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
)

APPLY = "torch.autograd.Function.apply"

# Models are exported on the CPU unless someone says otherwise.
DEVICE = "device:"


def get_attribute(
    machine: Machine, owner: Value, attr: str, frame: Frame, node: ast.AST, use: str = ""
) -> Value:
    """`owner.attr`."""
    if isinstance(owner, Instance):
        return instance_attribute(machine, owner, attr, frame, node)
    if isinstance(owner, Named):
        return _named_attribute(owner, attr)
    if isinstance(owner, Tensor):
        value = _tensor_attribute(owner, attr)
        if machine.emits(AttributeRead) and not (isinstance(value, Bound)):
            machine.notice(AttributeRead(machine.site(frame), node, owner, attr, value, use))
        return value
    if isinstance(owner, Choice):
        return _attribute_of_choice(machine, owner, attr, frame, node, use)
    if isinstance(owner, ModuleRef):
        if attr in owner.scope.values or defines(owner.scope, attr):
            return lookup_global(machine, attr, owner.scope)
        return module_value(f"{owner.scope.module_name}.{attr}", owner.scope)
    if isinstance(owner, ClassValue):
        return _attribute_of_class(machine, owner, attr, frame)
    if isinstance(owner, Super):
        return _attribute_of_super(machine, owner, attr)
    if isinstance(owner, Array):
        if machine.emits(AttributeRead):
            machine.notice(AttributeRead(machine.site(frame), node, owner, attr, Unknown(""), use))
        if attr == "size" and owner.unbacked and owner.traced:
            return Shape(True, origin="a NumPy array")
        if attr == "shape" and owner.unbacked and owner.traced:
            return Sequence(
                "tuple", None, Static("int"), "torch.Size", first=Shape(True, origin="a NumPy array")
            )
        if attr in ("shape", "size", "ndim", "dtype"):
            return Static("" if attr == "shape" else "int")
        if attr == "T":
            return owner
        return Bound(owner, Named("numpy.ndarray." + attr), attr)
    if isinstance(owner, (Sequence, Mapping_, Const, TensorScalar, Shape, Static)):
        if isinstance(owner, Sequence) and attr in owner.fields and owner.items is not None:
            return owner.items[owner.fields.index(attr)]
        if attr in ("real", "imag"):
            return owner
        if isinstance(owner, Static) and owner.of in ("float", "int") and attr == "is_floating_point":
            return Const(owner.of == "float")
        if isinstance(owner, Static) and owner.type in ("", "device", "dtype"):
            return Static()
        if isinstance(owner, Const) and not hasattr(owner.value, attr):
            return Unknown(f"{owner.describe()} has no attribute `{attr}`")
        return Bound(owner, Native(attr, _no_run), attr)
    if isinstance(owner, Function):
        return _attribute_of_function(owner, attr)
    if isinstance(owner, Partial) and attr == "func":
        return owner.function
    if isinstance(owner, Bound) and attr == "__func__":
        return owner.function
    if isinstance(owner, Bound) and attr == "__self__":
        return owner.receiver
    if isinstance(owner, Unknown):
        from exportlens.inference.uses import by_attribute

        tensor = by_attribute(machine, owner, attr)
        if tensor is not None:
            return get_attribute(machine, tensor, attr, frame, node, use)
        if owner.made and attr in _FACTS_OF_TENSORS:
            return _tensor_attribute(Tensor(), attr)
        # `batch.get("mask")` gives what `batch["mask"]` does.
        given = owner.given if attr == "get" else ""
        return Unknown(f"`{attr}` of something unknown", attr, owner.made, outside=owner.outside, given=given)
    return Unknown(f"`{attr}` of {owner.describe()}")


_FACTS_OF_TENSORS = frozenset(
    {
        "shape",
        "ndim",
        "dtype",
        "device",
        "is_cuda",
        "requires_grad",
        "layout",
        "is_sparse",
        "itemsize",
        "nbytes",
    }
)


def _attribute_of_function(owner: Function, attr: str) -> Value:
    if attr == "__name__":
        return Const(owner.name)
    if attr == "__code__":
        spec = owner.node.args
        names: list[Value] = [
            Const(parameter.arg) for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
        ]
        return Instance(
            Named("types.CodeType"),
            {
                "co_varnames": Sequence("tuple", names),
                "co_argcount": Const(len(spec.posonlyargs) + len(spec.args)),
            },
        )
    if attr == "__wrapped__":
        return owner
    return Unknown("an attribute of a function")


def _no_run(*_: object, **__: object) -> Value:
    return Unknown("a method that is not followed")


def _attribute_of_choice(
    machine: Machine, owner: Choice, attr: str, frame: Frame, node: ast.AST, use: str
) -> Value:
    result: Value | None = None
    candidates = [
        option for option in owner.options if not (isinstance(option, Const) and option.value is None)
    ]
    with machine.doubting(len(candidates) > 1):
        for option in candidates:
            value = get_attribute(machine, option, attr, frame, node, use)
            if result is None:
                result = value
            elif isinstance(value, Bound) or isinstance(result, Bound):
                result = Choice((*(result.options if isinstance(result, Choice) else (result,)), value))
            else:
                result = join(result, value)
    return result if result is not None else Unknown(f"`{attr}` of None")


def _named_attribute(owner: Named, attr: str) -> Value:
    if isinstance(owner, Member):
        if attr == "name":
            return Const(owner.name.rpartition(".")[2])
        return owner.value if attr in ("value", "_value_") else Unknown("attribute of an enum member")
    if owner.name.startswith(DEVICE):
        return (
            Const(owner.name.removeprefix(DEVICE).partition(":")[0])
            if attr == "type"
            else Const(None)
            if attr == "index"
            else Unknown("of a device")
        )
    if (
        owner.name.startswith("torch.")
        and attr in ("is_floating_point", "is_complex")
        and _is_dtype(owner.name)
    ):
        return Bound(owner, Native(attr, _no_run), attr)
    name = f"{owner.name}.{attr}"
    if (
        owner.name in ("torch.version", "torch")
        and attr in ("__version__", "cuda", "hip")
        and name != "torch.cuda"
    ):
        return Static("str")
    return external(name)


def _is_dtype(name: str) -> bool:
    constant = knowledge.lookup_constant(name)
    return constant is not None and constant.kind == "dtype"


def _is_complex(dtype: str | None) -> bool:
    return dtype is not None and dtype.startswith("complex")


def _tensor_attribute(owner: Tensor, attr: str) -> Value:
    if attr == "shape":
        return shape_of(owner)
    if attr == "ndim":
        return Const(owner.rank) if owner.rank is not None else Static("int")
    if attr == "dtype":
        exact = owner.dtype is not None and owner.dtype not in ("float", "int", "complex")
        return (
            Named("torch." + owner.dtype)
            if exact and owner.dtype is not None and _is_dtype("torch." + owner.dtype)
            else Static("dtype", owner.dtype if owner.dtype is not None and not exact else "any")
        )
    if attr == "device":
        return Named(DEVICE + "cpu")
    if attr in (
        "is_cuda",
        "is_mps",
        "is_xla",
        "is_quantized",
        "is_sparse",
        "is_nested",
        "is_meta",
        "is_xpu",
        "is_hpu",
    ):
        return Const(False)
    if attr == "data":
        return replace(
            owner, origin="fresh" if owner.origin != "constant" else "constant", requires_grad=False
        )
    found = knowledge.tensor_property(attr)
    if found is None:
        if knowledge.lookup_method(attr) is not None or attr in _TENSOR_METHODS:
            return Bound(owner, Named("torch.Tensor." + attr), attr)
        return Unknown(f"tensors have no attribute `{attr}` that is known")
    kind = found.returns.kind
    if kind == "tensor":
        rank = owner.rank if attr in ("T", "mT", "H", "mH", "real", "imag", "grad") else None
        made = Tensor(
            "constant" if owner.origin == "constant" else "fresh",
            "",
            "float" if attr in ("real", "imag") and _is_complex(owner.dtype) else owner.dtype,
            rank,
            owner.unbacked,
            owner.root if found.alias else 0,
            open_dim=owner.open_dim if attr in ("real", "imag") else open_dims.after(attr, owner, {}),
        )
        return after_call(attr, False, [owner], {}, made, False)
    if kind in ("bool", "int", "float", "str", "device", "dtype", "layout"):
        return Static(kind)
    if kind == "size":
        return shape_of(owner)
    return Unknown(f"`{attr}` of a tensor")


_TENSOR_METHODS = frozenset(
    {
        "item",
        "tolist",
        "numpy",
        "size",
        "dim",
        "numel",
        "type",
        "backward",
        "register_hook",
        "new",
        "__array__",
        "__len__",
        "__index__",
    }
)


def _held(value: Value, attr: str) -> Value:
    """What traced code finds in an attribute that holds `value`: of a tensor that was made before it knows no number."""
    put_there = isinstance(value, Tensor) and value.name == f"self.{attr}"  # by traced code
    if not isinstance(value, Tensor) or value.origin != "constant" or put_there:
        return value
    return replace(value, origin="attribute", name=f"self.{attr}")


def instance_attribute(machine: Machine, owner: Instance, attr: str, frame: Frame, node: ast.AST) -> Value:
    """An attribute of an object: its own, its class's (methods bound, properties run), or what torch.nn.Module gives it."""
    if attr in owner.attributes:
        value = owner.attributes[attr]
        if machine.tracing and not machine.quiet and isinstance(value, Tensor) and not owner.traced:
            _note_read(machine, owner, attr, frame, node)
        if machine.tracing and isinstance(value, Tensor):
            return _held(value, attr)
        if machine.tracing and isinstance(value, Choice):
            # On one way traced code has bound it anew.
            ways = [_held(each, attr) for each in value.options]
            anew = any(way is not option for way, option in zip(ways, value.options, strict=True))
            return functools.reduce(join, ways) if anew else value
        if machine.tracing and not owner.traced and isinstance(value, Mapping_):
            machine.dicts_read.setdefault(id(value), (value, owner, attr))
        if machine.tracing and isinstance(value, (Sequence, Mapping_)) and machine.emits(UnregisteredRead):
            found = unregistered(owner, attr, value)
            if found is not None:
                machine.notice(UnregisteredRead(machine.site(frame), node, owner, attr, found))
        return value
    value_, found_in, hidden = class_attribute(owner.cls, attr)
    if value_ is not None:
        del found_in
        if hidden and not isinstance(value_, Function):
            return taken_up(machine, value_)
        return bind(machine, value_, owner, attr, frame, node)
    from exportlens.inference.modules import module_attribute

    made = module_attribute(machine, owner, attr) or object_attribute(owner, attr)
    if made is not None:
        return made
    if attr == "__class__":
        return owner.cls
    if attr == "apply" and isinstance(owner.cls, ClassValue) and defines_gradient(owner.cls):
        applied = Bound(owner.cls, Named(APPLY), attr)
        if machine.emits(AttributeRead):
            machine.notice(AttributeRead(machine.site(frame), node, owner, attr, applied))
        return applied
    if attr == "__dict__":
        # What is written there becomes an attribute, under names that need not be known.
        machine.journal.write(owner, "open", True)
        return Mapping_(owner.attributes, Unknown("an attribute"))
    if attr == "__items__":
        return Unknown("items")
    getter, _, _ = class_attribute(owner.cls, "__getattr__")
    if isinstance(getter, Function):
        from exportlens.inference.calls import call_value

        return call_value(machine, getter, [owner, Const(attr)], {}, frame, node)
    if hidden or owner.open:
        return Unknown(f"`{attr}` may come from a base class that is not followed")
    if machine.tracing and not machine.quiet and not owner.traced:
        _note_read(machine, owner, attr, frame, node)
    return Unknown(f"`{attr}` is not set in what was followed")


def _note_read(machine: Machine, owner: Instance, attr: str, frame: Frame, node: ast.AST) -> None:
    """The function that runs reads what the attribute held when the call began."""
    key = (id(owner), attr)
    if frame.function is not None and key not in machine.attributes_written:
        machine.attributes_read.setdefault(key, {})[frame.function.node, node] = None


def bind(machine: Machine, value: Value, owner: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
    """What reading a class's attribute through an object gives."""
    if isinstance(value, Function):
        kinds = {name.rpartition(".")[2] for name in value.decorators}
        if "staticmethod" in kinds:
            return value
        if "classmethod" in kinds:
            return Bound(owner.cls if isinstance(owner, Instance) else owner, value, attr)
        if kinds & {"property", "cached_property"}:
            from exportlens.inference.functions import call_function

            return call_function(machine, value, [owner], {}, frame, node)
        return Bound(owner, value, attr)
    if isinstance(value, Instance) and class_attribute(value.cls, "__get__")[0] is not None:
        return Unknown(f"what the descriptor `{attr}` gives")
    return value


# What a class derives from that defines its own gradient.
AUTOGRAD_FUNCTIONS = frozenset(
    {
        "torch.autograd.Function",
        "torch.autograd.function.Function",
        "torch.autograd.function.InplaceFunction",
    }
)


def is_applied(called: Bound) -> bool:
    """Whether it is `apply` of a class that defines its own gradient, which runs its `forward`."""
    return isinstance(called.function, Named) and called.function.name == APPLY


def defines_gradient(cls: Value) -> bool:
    """Whether `cls` derives from torch.autograd.Function."""
    return any(isinstance(base, Named) and base.name in AUTOGRAD_FUNCTIONS for base in class_order(cls))


def _attribute_of_class(machine: Machine, owner: ClassValue, attr: str, frame: Frame) -> Value:
    value, _, hidden = class_attribute(owner, attr)
    if value is not None:
        if isinstance(value, Function) and any(name.endswith("classmethod") for name in value.decorators):
            return Bound(owner, value, attr)
        return value
    if attr == "__name__":
        return Const(owner.name)
    if attr == "apply" and defines_gradient(owner):
        return Bound(owner, Named(APPLY), attr)
    return Unknown(f"`{attr}` of class `{owner.name}`" + (" (a base is not followed)" if hidden else ""))


def _attribute_of_super(machine: Machine, owner: Super, attr: str) -> Value:
    cls = owner.instance.cls if isinstance(owner.instance, Instance) else owner.instance
    value, _, _ = class_attribute(cls, attr, owner.after)
    if value is not None:
        if isinstance(value, Function) and any(name.endswith("staticmethod") for name in value.decorators):
            return value
        if isinstance(value, Function) and any(name.endswith("property") for name in value.decorators):
            from exportlens.inference.functions import call_function

            return call_function(
                machine, value, [owner.instance], {}, Frame(value.scope, value.chunk, {}), value.node
            )
        return Bound(owner.instance, value, attr) if isinstance(value, Function) else value
    order = class_order(cls)
    behind = order[order.index(owner.after) + 1 :] if owner.after in order else []
    base = next((item for item in behind if isinstance(item, Named)), Named("builtins.object"))
    return Bound(owner, Named(f"{base.name}.{attr}"), attr)
