"""What rules read off a place: its source words, its kind of value, the syntax around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Place
from exportlens.inference.values import (
    Array,
    ClassValue,
    Instance,
    Named,
    Sequence,
    Shape,
    Tensor,
    TensorScalar,
    Value,
    from_data,
    is_traced_tensor,
    options,
)
from exportlens.source.document import Chunk

_LONGEST = 60
# What traces the functions that it is given, each as a graph of its own.
_OPERATORS = frozenset({"cond", "while_loop", "map", "scan"})


def words(node: ast.AST) -> str:
    """The source of `node` on one line, shortened, for use in a message."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def is_data(value: Value | None) -> bool:
    """Whether `value` certainly comes from tensor data, whatever the configuration."""
    return value is not None and all(from_data(option) for option in options(value))


def is_tensor(value: Value | None) -> bool:
    """Whether `value` certainly is a traced tensor, whatever the configuration."""
    return value is not None and all(is_traced_tensor(option) for option in options(value))


def is_scalar(value: Value | None) -> bool:
    """Whether `value` certainly is a Python number read out of a tensor."""
    return value is not None and all(isinstance(option, TensorScalar) for option in options(value))


def is_unbacked(value: Value | None) -> bool:
    """Whether `value` is a tensor of which some size depends on data."""
    return value is not None and all(
        isinstance(option, Tensor) and option.unbacked for option in options(value)
    )


def promises_sizes(place: Place, how: str = "") -> bool:
    """Whether the function that a call is in promises anything by `torch._check`, of sizes as a rule; with `how` in its text."""
    function = place.site.function
    return function is not None and any(
        isinstance(each, ast.Call)
        and ast.unparse(each.func).startswith("torch._check")
        and how in ast.unparse(each)
        for each in ast.walk(function.node)
    )


def subject(value: Value, node: ast.AST) -> str:
    """What is looked at, in words: "the value of tensor `x.sum()`"."""
    first = next(iter(options(value)))
    text = words(node)
    if isinstance(first, Tensor):
        return f"the value of tensor `{text}`"
    if isinstance(first, Shape):
        return f"`{text}`, a size that depends on tensor data"
    if isinstance(first, Array):
        return f"`{text}`, NumPy data made from a tensor"
    return f"`{text}`, which was read out of tensor data"


def class_name(value: Value) -> str:
    """The qualified name of an object's class, or ""."""
    if isinstance(value, Instance) and isinstance(value.cls, (Named, ClassValue)):
        return value.cls.name
    return ""


def base_names(value: Value) -> Iterator[str]:
    """Names of a workspace class and of all its bases, as far as they are known."""
    if isinstance(value, Named):
        yield value.name
    elif isinstance(value, ClassValue):
        yield value.name
        for base in value.bases:
            yield from base_names(base)


def library_base_names(cls: ClassValue) -> Iterator[str]:
    """Names of those bases of a workspace class, and of its bases, that the workspace does not define."""
    for base in cls.bases:
        if isinstance(base, Named):
            yield base.name
        elif isinstance(base, ClassValue):
            yield from library_base_names(base)


def tensors_in(value: Value | None) -> Iterator[Tensor]:
    """The traced tensors among `value` and the elements of a list or tuple."""
    if isinstance(value, Tensor):
        if is_traced_tensor(value):
            yield value
    elif isinstance(value, Sequence):
        for item in value.items if value.items is not None else [value.element] if value.element else []:
            yield from tensors_in(item)


def numbers_in(value: Value | None) -> bool:
    """Whether `value` is, or is a list or tuple that holds, a number of Python that certainly comes from tensor data."""
    if isinstance(value, Sequence):
        if value.type_name == "torch.Size":
            return False
        return any(
            map(
                numbers_in,
                value.items if value.items is not None else [value.element] if value.element else [],
            )
        )
    return (
        value is not None
        and is_data(value)
        and all(isinstance(option, (Shape, TensorScalar)) for option in options(value))
    )


def ancestors(place: Place, node: ast.AST | None = None) -> list[ast.AST]:
    """The nodes around `node` (the place's own by default), innermost first. Slow: for findings only."""
    return nodes_around(place.site.chunk, node or place.node)


def nodes_around(chunk: Chunk, wanted: ast.AST) -> list[ast.AST]:
    """The nodes of `chunk` around `wanted`, innermost first. Slow: for findings only."""
    path: list[ast.AST] = []

    def visit(current: ast.AST) -> bool:
        if current is wanted:
            return True
        first = getattr(current, "lineno", None)
        if first is not None:
            line = getattr(wanted, "lineno", first)
            decorated = [decorator.lineno for decorator in getattr(current, "decorator_list", [])]
            if not min([first, *decorated]) <= line <= (getattr(current, "end_lineno", None) or line):
                return False
        for child in ast.iter_child_nodes(current):
            if visit(child):
                path.append(current)
                return True
        return False

    for statement in chunk.body:
        if visit(statement):
            break
    return path


def operators_around(place: Place) -> int:
    """How many calls of torch.cond and its kin lead to the place, one inside of the other: what is traced there is a part
    of a graph of its own."""
    return sum(operator_name(node) in _OPERATORS for _, _, node in place.site.trail)


def operator_name(node: ast.AST) -> str:
    """The name of what `node` calls, as it is written last: `cond` of `torch.cond(...)`."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def keeps_gradients(place: Place) -> bool:
    """Whether gradients may be recorded at the place, as far as the contexts and decorators around it and the calls that
    lead to it say."""
    ways = [(place.site.chunk, place.node), *((chunk, node) for _, chunk, node in reversed(place.site.trail))]
    for chunk, node in ways:
        for around in nodes_around(chunk, node):
            contexts: list[ast.expr] = []
            if isinstance(around, (ast.With, ast.AsyncWith)):
                contexts = [item.context_expr for item in around.items]
            elif isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
                contexts = around.decorator_list
            for context in contexts:
                called = context.func if isinstance(context, ast.Call) else context
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                if name in ("no_grad", "inference_mode"):
                    return False
                if name == "enable_grad":
                    return True
                if name == "set_grad_enabled" and isinstance(context, ast.Call) and context.args:
                    given = context.args[0]
                    exporting = any(
                        getattr(each, "attr", "") in ("is_exporting", "is_compiling")
                        for each in ast.walk(given)
                    )
                    return not exporting and not (isinstance(given, ast.Constant) and not given.value)
    return True


def is_tested(place: Place, *, anywhere: bool = False, asserted: bool = True) -> bool:
    """Whether the node is the test of an `if`, `while`, `assert` or ternary (or stands `anywhere` in it).

    A decision on data is reported there already. Unless `asserted`, a test of an `assert` is none.
    """
    inner = place.node
    for outer in ancestors(place):
        if isinstance(outer, (ast.If, ast.While, ast.Assert, ast.IfExp)):
            return outer.test is inner and (asserted or not isinstance(outer, ast.Assert))
        if isinstance(outer, ast.stmt) or not (anywhere or isinstance(outer, (ast.BoolOp, ast.UnaryOp))):
            return False
        inner = outer
    return False
