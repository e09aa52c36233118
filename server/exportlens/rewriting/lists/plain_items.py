"""What may be computed of each element of a list in any case: it writes nothing, draws no random numbers, and raises nothing by the
data."""

from __future__ import annotations

import ast

from exportlens.inference.values import Instance, Named, Sequence
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.moving import may_write
from exportlens.source.walking import walk

# Layers whose result depends on more than their input and parameters, or that keep statistics of what they are given.
_VARYING = (
    "Dropout",
    "AlphaDropout",
    "FeatureAlphaDropout",
    "BatchNorm",
    "InstanceNorm",
    "SyncBatchNorm",
    "RReLU",
)
# Functions and methods that raise for some data, or draw random numbers.
_RAISING = (
    "cholesky",
    "inv",
    "inverse",
    "solve",
    "lstsq",
    "multinomial",
    "bernoulli",
    "normal",
    "poisson",
    "dropout",
)


def is_plain(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` may be computed in any case and once more."""
    if may_write([node], kinds):
        return False
    for each in walk(node):
        if isinstance(each, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)):
            return False
        if isinstance(each, ast.Subscript) and kinds.of(each.slice).what == "scalar":
            return False
        if not isinstance(each, ast.Call):
            continue
        name = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
        if "rand" in name or name.startswith(_RAISING) or _varies(kinds.of(each.func)):
            return False
    return True


def _varies(kind: Kind) -> bool:
    """Whether calls of a layer differ from each other for the same input, or leave something behind."""
    layer = kind.value
    if not isinstance(layer, Instance):
        return False
    if not isinstance(layer.cls, Named):
        return True
    items = layer.attributes.get("__items__")
    inside = items.items if isinstance(items, Sequence) and items.items is not None else ()
    name = layer.cls.name.rpartition(".")[2]
    return name.startswith(_VARYING) or any(_varies(Kind("object", value=each)) for each in inside)
