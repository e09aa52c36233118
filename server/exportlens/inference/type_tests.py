"""`isinstance`, `type` and their like: what a value certainly is, or is not."""

from __future__ import annotations

import ast

from exportlens.inference import knowledge
from exportlens.inference.builtin_calls import Run
from exportlens.inference.classes import class_order, is_module_class
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.values import (
    Array,
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    ModuleRef,
    Named,
    Native,
    Partial,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
)


def _isinstance(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    if len(args) != 2:
        return Static("bool")
    kinds = args[1].items if isinstance(args[1], Sequence) and args[1].items is not None else [args[1]]
    value = args[0]
    if isinstance(value, Choice):
        verdicts = {_is_a_any(option, kinds) for option in value.options}
        verdict = verdicts.pop() if len(verdicts) == 1 else None
    else:
        verdict = _is_a_any(value, kinds)
    return Static("bool") if verdict is None else Const(verdict)


def _is_a_any(value: Value, kinds: list[Value]) -> bool | None:
    verdicts = [_is_a(value, kind) for kind in kinds]
    if True in verdicts:
        return True
    return None if None in verdicts else False


_KIND_NAMES = {
    "builtins.int": "int",
    "builtins.float": "float",
    "builtins.str": "str",
    "builtins.bool": "bool",
    "builtins.list": "list",
    "builtins.tuple": "tuple",
    "builtins.dict": "dict",
    "builtins.set": "set",
}


def _is_a(value: Value, kind: Value) -> bool | None:
    """Whether `value` is an instance of the class `kind`; None where it is not known."""
    if isinstance(kind, Sequence) and kind.items is not None:
        return _is_a_any(value, kind.items)
    name = kind.name if isinstance(kind, Named) else ""
    short = _KIND_NAMES.get(name)
    if isinstance(value, Const):
        if short is None:
            return (
                False
                if isinstance(kind, (Named, ClassValue))
                and (name.startswith("torch.") or isinstance(kind, ClassValue))
                else _abstract(type(value.value).__name__, name)
            )
        actual = type(value.value).__name__
        return actual == short or (actual == "bool" and short == "int")
    if isinstance(value, Tensor):
        if name in ("torch.Tensor", "torch._C.TensorBase", "torch.TensorType"):
            return True
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            return value.origin == "parameter"
        return (
            False
            if isinstance(kind, ClassValue) or short is not None or name.startswith(("torch.", "numpy."))
            else None
        )
    if isinstance(value, (Sequence, Mapping_)):
        actual = value.kind if isinstance(value, Sequence) else "dict"
        if short is not None:
            return actual == short
        if name == "torch.Size":
            return isinstance(value, Sequence) and value.type_name == "torch.Size"
        if name.startswith("torch."):
            return False
        return _abstract(actual, name)
    if isinstance(value, (Shape, TensorScalar, Static)):
        if short is not None and value.type:
            return (
                value.type == short
                if isinstance(value, Static)
                or short not in ("int", "bool")
                or value.type not in ("int", "bool")
                else value.type == short or short == "int"
            )
        if name == "torch.Tensor" and (not isinstance(value, Static) or value.type):
            return False
        return None
    if isinstance(value, Instance):
        return _instance_is_a(value, kind, name, short)
    if isinstance(value, (Function, Bound, Partial, Native, ClassValue, ModuleRef)):
        if short is not None or name.startswith("torch.Tensor") or name == "torch.nn.Module":
            return False
        return None
    if isinstance(value, Array):
        if name == "numpy.generic" and value.rank is not None and not value.plain:
            return value.rank == 0
        if value.rank == 0:
            return None  # a number of NumPy's, or one of Python that was made of it
        return (
            True
            if name == "numpy.ndarray"
            else False
            if short is not None or name == "torch.Tensor"
            else None
        )
    return None


def _abstract(actual: str, name: str) -> bool | None:
    short = name.rpartition(".")[2]
    if short in ("Iterable", "Sequence", "Sized", "Collection"):
        return actual in ("list", "tuple", "str", "dict", "set", "range") and not (
            short == "Sequence" and actual in ("dict", "set")
        )
    if short == "Mapping":
        return actual == "dict"
    if short in ("Number", "Real", "Integral"):
        return actual in ("int", "float", "bool") and not (short == "Integral" and actual == "float")
    if short == "Callable":
        return False
    return None


def _instance_is_a(value: Instance, kind: Value, name: str, short: str | None) -> bool | None:
    order = class_order(value.cls)
    if isinstance(kind, ClassValue):
        return (
            True
            if any(
                item is kind or (isinstance(item, ClassValue) and item.node is kind.node) for item in order
            )
            else None
            if value.open
            else False
        )
    if isinstance(kind, Named):
        canonical = knowledge.canonical_name(name) or name
        for item in order:
            if isinstance(item, Named) and (knowledge.canonical_name(item.name) or item.name) == canonical:
                return True
        if canonical == "torch.nn.Module" and is_module_class(value.cls):
            return True
        if value.open:
            return None
        if short is not None or name.startswith("torch."):
            return False
    return None


def _type(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    value = args[0]
    if isinstance(value, Instance):
        return value.cls
    if isinstance(value, Const):
        return Named("builtins." + type(value.value).__name__)
    if isinstance(value, Tensor):
        return Named("torch.Tensor")
    if isinstance(value, Sequence) and value.kind in ("list", "tuple", "set") and not value.type_name:
        return Named("builtins." + value.kind)
    return Unknown("type()")


def _is_tensor(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    return _isinstance(machine, [args[0] if args else Unknown(), Named("torch.Tensor")], kwargs, frame, node)


TYPE_TESTS: dict[str, Run] = {
    "builtins.isinstance": _isinstance,
    "builtins.type": _type,
    "torch.is_tensor": _is_tensor,
    "torch.overrides.is_tensor_like": _is_tensor,
}
