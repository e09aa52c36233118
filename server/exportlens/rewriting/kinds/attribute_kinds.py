"""What attributes give: kinds of properties of tensors, of parts of Modules, and of names of other modules."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from exportlens.inference import knowledge
from exportlens.inference.classes import class_attribute, class_order
from exportlens.inference.names import external
from exportlens.inference.values import ClassValue, Const, Instance, Named, Sequence, Tensor
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.kind import (
    UNKNOWN_KIND,
    Kind,
    element_of,
    length_from_data,
    of_value,
    returned,
)

if TYPE_CHECKING:
    from exportlens.rewriting.kinds.kinds import Kinds

# Properties that turn the order of dimensions round.
_TRANSPOSED = frozenset({"T", "mT", "H", "mH"})
# What the layers of torch.nn call their tensors.
_MODULE_TENSORS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def of_attribute(kinds: Kinds, node: ast.Attribute) -> Kind:
    name = kinds.qualified(node)
    if name is not None:
        constant = knowledge.lookup_constant(name)
        if constant is not None and isinstance(constant.value, (int, float)):
            return Kind("number", type=type(constant.value).__name__)
        known = external(name)
        if isinstance(known, Const) and isinstance(known.value, float):
            return of_value(known, "")
        return Kind("static", value=Named(name))
    owner = kinds.of(node.value)
    if owner.what == "tensor":
        return _of_property(kinds, node.attr, owner)
    path = dotted(node) or ""
    if path in kinds.names:
        # What the code at hand has set it to.
        return kinds.names[path]
    if isinstance(owner.value, Instance) and node.attr in owner.value.attributes:
        return of_value(owner.value.attributes[node.attr], path)
    of_class = _of_class(owner.value, node.attr) if isinstance(owner.value, Instance) else None
    if of_class is not None:
        return of_class
    if isinstance(node.value, ast.Name) and kinds.is_enumeration(node.value.id):
        return Kind("object", roots=frozenset({path}))
    if (
        node.attr in _MODULE_TENSORS
        and isinstance(owner.value, Instance)
        and isinstance(owner.value.cls, Named)
        and owner.value.cls.name.startswith("torch.nn.")
    ):
        origin = "parameter" if node.attr in ("weight", "bias") else "buffer"
        return Kind("tensor", roots=frozenset({path}) if path else None, value=Tensor(origin))
    if (
        owner.what == "container"
        and isinstance(owner.value, Sequence)
        and node.attr in owner.value.fields
        and owner.items
    ):
        return owner.items[owner.value.fields.index(node.attr)]
    if owner.what == "container" and node.attr in ("values", "indices"):
        return replace(
            element_of(owner), dtype="int64" if node.attr == "indices" else element_of(owner).dtype
        )
    return replace(UNKNOWN_KIND, roots=frozenset({path}) if path else None)


def _of_class(instance: Instance, attr: str) -> Kind | None:
    """The kind of a number or a text that the class itself holds, as `LONG = 1` in its body, and that none of its methods sets."""
    value, _, hidden = class_attribute(instance.cls, attr)
    if hidden or not isinstance(value, Const) or not isinstance(value.value, (int, float, str)):
        return None
    classes = [each for each in class_order(instance.cls) if isinstance(each, ClassValue)]
    return None if any(attr in _attributes_set(each.node) for each in classes) else of_value(value, "")


@lru_cache(maxsize=64)
def _attributes_set(cls: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        each.attr
        for each in ast.walk(cls)
        if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load)
    )


def _of_property(kinds: Kinds, attr: str, owner: Kind) -> Kind:
    known = knowledge.tensor_property(attr)
    if known is None:
        return UNKNOWN_KIND
    if attr == "shape" and length_from_data(owner):
        return Kind("static", type="size", value=owner.value)
    if known.returns.kind == "tensor":
        return Kind(
            "tensor",
            owner.dtype,
            owner.rank,
            owner.roots if known.alias else frozenset(),
            moved=owner.moved if attr not in _TRANSPOSED else not owner.moved or owner.rank != 2,
            parted=known.alias and owner.parted,
            later=known.alias and owner.later,
        )
    return returned(known.returns, Kind("static"), None, None)
