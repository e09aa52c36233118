"""Parameters: what an entry point's arguments are, from annotation, default and use."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.classes import is_module_class
from exportlens.inference.expressions import evaluate
from exportlens.inference.legacy import TENSOR_TYPES
from exportlens.inference.machine import Frame, Machine, Raised
from exportlens.inference.names import apart, taken_up
from exportlens.inference.values import (
    Choice,
    ClassValue,
    Const,
    Function,
    Mapping_,
    ModuleRef,
    Named,
    Sequence,
    Static,
    Tensor,
    Unknown,
    Value,
)
from exportlens.source.parsing import parse_python

# How many aliases of a type are followed, one to the next.
_MAX_ALIASES = 3
_SCALARS = {"int", "float", "bool", "str", "complex", "bytes"}
_LISTS = {
    "List",
    "list",
    "Tuple",
    "tuple",
    "Sequence",
    "MutableSequence",
    "Iterable",
    "Collection",
    "Set",
    "set",
}
_MAPPINGS = {"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"}


def argument_value(machine: Machine, function: Function, parameter: ast.arg, default: Value | None) -> Value:
    """The value that an entry point's parameter is taken to have: its default if it has one, else by annotation, else by use."""
    from exportlens.inference.uses import by_use

    if default is not None:
        return taken_up(machine, default)
    annotated = (
        from_annotation(machine, function, parameter.annotation, parameter.arg)
        if parameter.annotation is not None
        else None
    )
    if annotated is not None:
        return annotated
    told = parameter.annotation is not None and _last(parameter.annotation) not in ("Any", "object")
    used = by_use(machine, function, parameter.arg, told)
    return replace(used, given="argument") if isinstance(used, Unknown) else used


def input_tensor(machine: Machine, name: str, dtype: str | None = None) -> Tensor:
    return Tensor("input", name, dtype, None, False, machine.new_root())


def from_annotation(machine: Machine, function: Function, annotation: ast.expr, name: str) -> Value | None:
    """The value that an annotation promises; None where it says nothing that helps."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return from_annotation(machine, function, parse_python(annotation.value, mode="eval").body, name)
        except (SyntaxError, ValueError, RecursionError):
            return None
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _union(machine, function, [annotation.left, annotation.right], name)
    if isinstance(annotation, ast.Subscript):
        return _generic(machine, function, annotation, name)
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return Const(None)
    frame = Frame(
        function.scope,
        function.chunk,
        {},
        None,
        function.closure if isinstance(function.closure, Frame) else None,
    )
    alias = _alias(machine, function, annotation)
    if alias is not None:
        return from_annotation(machine, alias[1], alias[0], name)
    with apart(machine):
        try:
            kind = evaluate(machine, annotation, frame)
        except Raised:
            return None
    return _of_class(machine, kind, name)


def _alias(
    machine: Machine, function: Function, annotation: ast.expr, depth: int = 0
) -> tuple[ast.expr, Function] | None:
    """What a name stands for that a module gives to a type (`Batch = Dict[str, Tensor]`), and where it is said."""
    if isinstance(annotation, ast.Attribute):
        with apart(machine):
            try:
                owner = evaluate(
                    machine, annotation.value, Frame(function.scope, function.chunk, {}, None, None)
                )
            except Raised:
                return None
        if not isinstance(owner, ModuleRef):
            return None
        scope, name = owner.scope, annotation.attr
    else:
        scope, name = function.scope, _last(annotation)
    bindings = list(scope.bindings.get(name, ()))
    if len(bindings) != 1 or depth > _MAX_ALIASES:
        return None
    chunk, statement = bindings[0]
    if isinstance(statement, ast.ImportFrom):
        origin = scope.workspace.resolve(scope.absolute_import(statement.module, statement.level), scope)
        real = next((alias.name for alias in statement.names if (alias.asname or alias.name) == name), "")
        if origin is None or origin is scope or not real:
            return None
        there = replace(function, scope=origin, closure=None)
        return _alias(machine, there, ast.Name(real), depth + 1)
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(value, (ast.Subscript, ast.BinOp)):
        return value, replace(function, scope=scope, chunk=chunk, closure=None)
    return None


def _of_class(machine: Machine, kind: Value, name: str) -> Value | None:
    if isinstance(kind, Named):
        short = kind.name.rpartition(".")[2]
        if kind.name.startswith("torch.") and short in ("Tensor", "Parameter"):
            return input_tensor(machine, name)
        if kind.name.startswith("torch.") and short in TENSOR_TYPES:
            return input_tensor(machine, name, TENSOR_TYPES[short])
        if kind.name.startswith("builtins.") and short in _SCALARS:
            return Static(short)
        if kind.name.startswith(("builtins.", "typing.", "collections.")):
            if short in _LISTS:
                sequence = "tuple" if short.lower() == "tuple" else "list"
                return Sequence(sequence, None, Unknown(f"an element of `{name}`"))
            if short in _MAPPINGS:
                return Mapping_({}, Unknown(f"a value of `{name}`"))
        if short == "Tensor":
            return input_tensor(machine, name)
        return None
    if isinstance(kind, ClassValue):
        if is_module_class(kind):
            return Unknown(f"a `{kind.name}` that is passed in")
        return default_instance(machine, kind)
    if isinstance(kind, Choice):
        return _of_class(machine, kind.options[0], name)
    return None


def default_instance(machine: Machine, kind: ClassValue) -> Value:
    """An object of `kind` made with its defaults: what configuration classes are when nothing else is said."""
    from exportlens.inference.construction import instantiate

    with apart(machine):
        try:
            return instantiate(machine, kind, [], {}, Frame(kind.scope, kind.chunk, {}), kind.node)
        except Raised:
            return Unknown(f"an instance of `{kind.name}`")


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _generic(machine: Machine, function: Function, annotation: ast.Subscript, name: str) -> Value | None:
    base = _last(annotation.value)
    inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if base == "Optional":
        return from_annotation(machine, function, inner[0], name)
    if base == "Union":
        return _union(machine, function, inner, name)
    if base in _LISTS and base.lower() != "tuple":
        element = from_annotation(machine, function, inner[0], name)
        return Sequence("list", None, element or Unknown(f"an element of `{name}`"), filled=True)
    if base in ("Tuple", "tuple"):
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
            return Sequence(
                "tuple", None, from_annotation(machine, function, inner[0], name) or Unknown(name)
            )
        return Sequence(
            "tuple", [from_annotation(machine, function, item, name) or Unknown(name) for item in inner]
        )
    if base in _MAPPINGS and len(inner) == 2:
        return Mapping_({}, from_annotation(machine, function, inner[1], name) or Unknown(name))
    if base in ("Annotated", "Final", "ClassVar", "Required"):
        return from_annotation(machine, function, inner[0], name)
    if base == "Literal":
        return (
            Static("str")
            if isinstance(inner[0], ast.Constant) and isinstance(inner[0].value, str)
            else Static()
        )
    # jaxtyping: Float[Tensor, "batch dim"]
    if (
        base in ("Float", "Int", "Bool", "Shaped", "Num", "Integer", "Float32", "Int64")
        and _last(inner[0]) == "Tensor"
    ):
        return input_tensor(
            machine,
            name,
            {"Bool": "bool", "Float32": "float32", "Int64": "int64", "Float": "float"}.get(base),
        )
    return None


def _union(machine: Machine, function: Function, nodes: list[ast.expr], name: str) -> Value | None:
    values: list[Value] = []
    for node in nodes:
        value = from_annotation(machine, function, node, name)
        if value is None:
            return None
        if not (isinstance(value, Const) and value.value is None):
            values.append(value)
    # A required argument that may be None is given: otherwise it would have a default.
    if not values:
        return Const(None)
    # What takes a tensor first of all is exported with one.
    return values[0] if len(values) == 1 or isinstance(values[0], Tensor) else Choice(tuple(values))
