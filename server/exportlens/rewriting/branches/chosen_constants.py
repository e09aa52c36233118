"""Numbers of a list or dict that the model holds, of which tensor data chooses one, are chosen out of a tensor of them.

    alpha = self.alphas[t.item()]   ->   alpha = torch.tensor(self.alphas, dtype=torch.float64)[torch.full((1,), t.item())].item()

A dict with numbers as keys is asked for the key's place: none of the keys is the number that is asked for, or one.

    self.table.get(n, 0)   ->   torch.tensor([0, *self.table.values()])[((torch.tensor([*self.table]) == n) * torch.arange(1, 4)).sum(0, keepdim=True)].item()
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.inference.places import Conversion
from exportlens.inference.values import (
    Const,
    Instance,
    Mapping_,
    Sequence,
    Static,
    TensorScalar,
    Value,
    options,
)
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import dotted


def numbers_of_list(draft: Draft, node: ast.Subscript, place: Conversion) -> str | None:
    """The text of a tensor of the numbers in the list that `node` chooses from; None where they may be anything else."""
    owner = _value_of(node.value, place.variables)
    if not isinstance(owner, Sequence) or owner.kind not in ("list", "tuple"):
        return None
    items = owner.items if owner.items is not None else [owner.element]
    types = {_type_of(each) for each in items}
    return _tensor(draft, draft.source.of(node.value), types)


def number_of_dict(draft: Draft, node: ast.Call, place: Conversion) -> str | None:
    """What is as `d.get(n, default)`, of numbers; None where the keys or values may be anything else."""
    if (
        not isinstance(node.func, ast.Attribute)
        or node.func.attr != "get"
        or len(node.args) != 2
        or node.keywords
    ):
        return None
    owner = _value_of(node.func.value, place.variables)
    if not isinstance(owner, Mapping_) or owner.kind != "dict" or owner.rest is not None or not owner.items:
        return None
    asked = all(isinstance(each, TensorScalar) and each.type == "int" for each in options(place.value))
    if not asked or not all(type(each) is int for each in owner.items):
        return None
    key, default = node.args
    types = {_type_of(_value_of(default, place.variables)), *map(_type_of, owner.items.values())}
    torch, source = draft.torch, draft.source
    held = source.of(node.func.value)
    numbers = _tensor(draft, f"[{source.of(default)}, *{held}.values()]", types)
    if numbers is None:
        return None
    places = f"{torch}.arange(1, {len(owner.items) + 1})"
    return (
        f"{numbers}[(({torch}.tensor([*{held}]) == {source.of(key)}) * {places}).sum(0, keepdim=True)].item()"
    )


def _tensor(draft: Draft, listed: str, types: set[str]) -> str | None:
    if types == {"float"}:
        return f"{draft.torch}.tensor({listed}, dtype={draft.torch}.float64)"
    return f"{draft.torch}.tensor({listed})" if types == {"int"} else None


def _value_of(node: ast.expr, variables: Mapping[str, Value]) -> Value | None:
    """What the interpreter knows of a constant, a name, or an attribute of an object."""
    if isinstance(node, ast.Constant):
        return Const(node.value)
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        number = node.operand.value
        return Const(-number) if isinstance(number, (int, float)) else None
    path = (dotted(node) or "").split(".")
    found = variables.get(path[0])
    for name in path[1:]:
        found = found.attributes.get(name) if isinstance(found, Instance) else None
    return found


def _type_of(value: Value | None) -> str:
    """The one type of number that `value` is, "" where it may be another or no number at all."""
    types = {_type(each) for each in options(value)} if value is not None else {""}
    return types.pop() if len(types) == 1 else ""


def _type(value: Value) -> str:
    if isinstance(value, Const):
        return type(value.value).__name__ if type(value.value) in (int, float) else ""
    return value.type if isinstance(value, (Static, TensorScalar)) else ""
