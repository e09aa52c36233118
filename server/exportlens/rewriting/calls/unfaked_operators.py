"""Operators of which torch knows no result without data: non-strict tracing runs them on zeros, but in no arm and no loop.

Measured on torch 2.13: strict tracing takes them there, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

# Those with a kernel for the processor, none for fake tensors and none that is composed of others (torch 2.13).
_FUNCTIONS = frozenset(
    {
        "torch.binomial",
        "torch.fake_quantize_per_channel_affine",
        "torch.fake_quantize_per_tensor_affine",
        "torch.geqrf",
        "torch.histogram",
        "torch.quantize_per_channel",
        "torch.quantize_per_tensor",
        "torch.quantize_per_tensor_dynamic",
    }
)
_METHODS = frozenset({"dequantize", "geqrf", "histogram"})


def unfaked_operator(nodes: Iterable[ast.AST], kinds: Kinds) -> str:
    """The operator of these that `nodes` call, by themselves or through functions and methods of the file; "" for none."""
    return _called(nodes, kinds, set())


def refuse_unfaked(nodes: Iterable[ast.AST], kinds: Kinds) -> None:
    """Raise Refused where `nodes` call one."""
    name = unfaked_operator(nodes, kinds)
    if name:
        raise Refused(
            f"it runs `{name}`, which non-strict tracing takes in no operator of control flow: call it before or behind it"
        )


def _called(nodes: Iterable[ast.AST], kinds: Kinds, seen: set[int]) -> str:
    for call in (each for node in nodes for each in walk(node) if isinstance(each, ast.Call)):
        name = kinds.qualified(call.func)
        if name in _FUNCTIONS:
            return name
        method = call.func if name is None and isinstance(call.func, ast.Attribute) else None
        if method is not None and method.attr in _METHODS and kinds.of(method.value).what == "tensor":
            return method.attr
        function = kinds.functions.get(dotted(call.func) or "")
        if function is not None and id(function) not in seen:
            seen.add(id(function))
            inside = kinds.inside_of_own(function)
            found = _called(function.body, inside, seen)
            if found:
                return found
    return ""
