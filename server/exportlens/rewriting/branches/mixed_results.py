"""Results that are a tensor on one way and a Python number on another: a tensor of one element stands for the number."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kind import LOCAL, SEVERAL, UNKNOWN_KIND, Kind, merged
from exportlens.source.walking import walk

# The numbers that a dtype holds as they are, by how its name begins.
_HOLDS = {
    "float": ("float", "int"),
    "double": ("float", "int"),
    "bfloat": ("float", "int"),
    "half": ("float", "int"),
    "int": ("int",),
    "bool": ("bool",),
}
_ASKING = frozenset({"isinstance", "type", "is_tensor", "hasattr", "getattr", "callable"})


def number_as_tensor(text: str, torch: str, dtype: str, kind: Kind = UNKNOWN_KIND) -> str:
    """The text of a tensor of `dtype`, "" for the one that torch gives it, for `text`, a number where `kind` says so.

    In a later call it may be another number: then torch.cond passes a float as a symbol in eager, of which torch.as_tensor cannot
    be traced where gradients are recorded (measured on torch 2.13). But torch.full takes no tensor for the number.
    """
    end = f", dtype={torch}.{dtype}" if dtype else ""
    is_number = kind.what in ("number", "size")
    return f"{torch}.full((), {text}{end})" if is_number else f"{torch}.as_tensor({text}{end})"


def fits(number: Kind, tensor: Kind) -> bool:
    """Whether a tensor without dimensions, of the dtype of `tensor`, which has none either, holds `number`: what takes a
    tensor on one way takes one on all."""
    if number.what != "number" or tensor.rank != 0 or tensor.dtype in (None, "int"):
        return False
    dtype = tensor.dtype or ""
    family = next((each for each in _HOLDS if dtype.startswith(each)), "")
    return number.type in _HOLDS.get(family, ())


def holds_numbers(tensor: Kind) -> bool:
    """Whether a tensor of the dtype of `tensor`, which has no dimensions, holds every int or float that is no tensor."""
    return all(fits(Kind("number", type=each), tensor) for each in ("int", "float"))


def tensor_of(kind: Kind) -> Kind | None:
    """The tensor that `kind`, a number on some ways and a tensor without dimensions on others, is on all of them where the numbers
    are made tensors; None where it is anything else."""
    options = kind.items or () if kind.type == SEVERAL else ()
    tensors = [each for each in options if each.what == "tensor"]
    if not tensors or any(each.what not in ("tensor", "number") for each in options):
        return None
    tensor = merged(tensors)
    return tensor if all(fits(each, tensor) for each in options if each.what == "number") else None


def is_configured(kind: Kind) -> bool:
    """Whether what is not known was there before, and is nothing that the function made."""
    return bool(kind.roots) and not any(each.startswith((LOCAL, "?")) for each in kind.roots or ())


def asks_type(source: Source, name: str) -> bool:
    """Whether something asks of `name` whether it is a tensor or a number."""
    return any(
        (dotted(each.func) or "").rpartition(".")[2] in _ASKING and _is_name(each.args[0], name)
        if isinstance(each, ast.Call) and each.args
        else isinstance(each, ast.Compare)
        and _is_name(each.left, name)
        and any(isinstance(one, (ast.Is, ast.IsNot)) for one in each.ops)
        for each in walk(source.tree)
    )


def refuse_identity(source: Source, names: Iterable[str]) -> None:
    """Raise Refused where something asks whether one of `names` is the very tensor that something else is: torch.cond gives
    another one on each way."""
    asked = set(names)
    for each in walk(source.tree):
        if not isinstance(each, ast.Compare) or not any(
            isinstance(op, (ast.Is, ast.IsNot)) for op in each.ops
        ):
            continue
        sides = [each.left, *each.comparators]
        if any(isinstance(one, ast.Constant) for one in sides):
            continue
        found = next((one.id for one in sides if isinstance(one, ast.Name) and one.id in asked), None)
        if found is not None:
            raise Refused(
                f"`{source.of(each)}` asks for the identity of `{found}`, which torch.cond makes anew"
            )


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def asks_type_of_result(source: Source, node: ast.AST) -> bool:
    """Whether something asks of what the function around `node` gives whether it is a tensor or a number."""
    function = source.enclosing_function(node)
    if function is None:
        return False
    for each in walk(source.tree):
        if not isinstance(each, ast.Call) or (dotted(each.func) or "").rpartition(".")[2] != function.name:
            continue
        parent = source.parents[each]
        if isinstance(parent, ast.Call) and (dotted(parent.func) or "").rpartition(".")[2] in _ASKING:
            return True
        targets = parent.targets if isinstance(parent, ast.Assign) else []
        names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        if any(asks_type(source, name) for name in names):
            return True
    return False
