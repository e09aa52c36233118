"""Operands: where a Python number made from tensor data ends up."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.compared_numbers import is_exact
from exportlens.rewriting.kinds.kinds import Kinds


def is_power_of_int(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is `2 ** n`, which is a float where `n` is negative: tensors of ints give 0 there, and a symbol in the place of
    `n` is asked for its sign (measured on torch 2.13)."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)):
        return False
    base, exponent = kinds.of(node.left), node.right
    absolute = (
        isinstance(exponent, ast.Call) and isinstance(exponent.func, ast.Name) and exponent.func.id == "abs"
    )
    whole = base.what in ("number", "size", "scalar") and base.type == "int"
    # 10 ** 0.25 is a float of any exponent; of a negative int it is a complex number.
    fraction = isinstance(node.left, ast.Constant) and kinds.of(exponent).type == "float"
    return whole and not isinstance(exponent, ast.Constant) and not absolute and not fraction


def meets_tensor(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether the number ends as the operand of a tensor or in the comparison of a test."""
    while True:
        parent = source.parents[node]
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, (ast.USub, ast.UAdd)):
            node = parent
        elif isinstance(parent, ast.BinOp):
            other = kinds.of(parent.right if parent.left is node else parent.left)
            if other.what == "tensor":
                return True
            if other.what not in ("number", "size", "scalar") or is_power_of_int(parent, kinds):
                return False
            node = parent
        elif isinstance(parent, (ast.If, ast.IfExp)):
            return parent.test is node
        elif isinstance(parent, (ast.Compare, ast.BoolOp)) or (
            isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
        ):
            outer = source.parents[parent]
            while isinstance(outer, (ast.BoolOp, ast.UnaryOp)):
                parent, outer = outer, source.parents[outer]
            return isinstance(outer, (ast.If, ast.IfExp)) and outer.test is parent
        elif isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            target, function = parent.targets[0], source.enclosing_function(node)
            if not isinstance(target, ast.Name) or function is None:
                return False
            same = [
                each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id
            ]
            loads = [each for each in same if isinstance(each.ctx, ast.Load)]
            later = all(source.start(each) > source.start(parent) for each in loads)
            return (
                later
                and len(loads) == len(same) - 1
                and all(meets_tensor(source, each, kinds) for each in loads)
            )
        else:
            return False


def compared(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether the number is compared with one that not every float dtype holds: Python compares doubles, torch compares in
    the tensor's dtype."""
    parent = source.parents[node]
    while isinstance(parent, (ast.BinOp, ast.UnaryOp)):
        node, parent = parent, source.parents[parent]
    return isinstance(parent, ast.Compare) and any(
        each is not node
        and not is_exact(kinds.of(each))
        and kinds.of(each).what in ("number", "size", "static", "unknown")
        for each in (parent.left, *parent.comparators)
    )


def read_out(node: ast.expr) -> tuple[str, ast.expr] | None:
    """How a number is read out ("item", "float", "int" or "bool"), and of what: `t` for `t.item()`, `int(t)` and `int(t.item())`."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return "item", node.func.value
    if isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "bool") and len(node.args) == 1:
        within = read_out(node.args[0])
        return node.func.id, within[1] if within is not None and within[0] == "item" else node.args[0]
    return None


# What `int()` and `bool()` leave as it is.
_UNCHANGED = {"int": ("int", "uint", "bool"), "bool": ("bool",)}


def tensor_behind(node: ast.expr, kinds: Kinds, whole: bool = False) -> ast.expr | None:
    """The tensor of one number behind `t.item()`, `float(t)` or `int(t)`: of a float, or of an int where `whole`."""
    found = read_out(node)
    if found is None:
        return None
    how, inner = found
    kind = kinds.of(inner)
    if how in _UNCHANGED and not (whole and (kind.dtype or "").startswith(_UNCHANGED[how])):
        return None
    is_float = kind.dtype is None or kind.dtype.startswith("float")
    return inner if kind.what == "tensor" and (is_float or whole) else None


def scalar(source: Source, node: ast.expr, kinds: Kinds) -> str:
    """The text of the tensor `node`, which has one element, without dimensions."""
    text = source.of(node)
    return text if kinds.of(node).rank == 0 else f"{primary(text)}.reshape(())"


def kept(source: Source, node: ast.expr, kinds: Kinds, uses: Iterable[ast.expr]) -> str:
    """The text of the tensor `node` for a name that held its number, which stands at `uses`: a later write in place must
    not reach it."""
    text = detached(source, node, kinds, uses)
    return text if kinds.of(node).fresh else f"{primary(text)}.clone()"


def detached(source: Source, node: ast.expr, kinds: Kinds, uses: Iterable[ast.expr]) -> str:
    """The text of the tensor `node`, without dimensions, in the place of its number at `uses`: no gradient goes through a
    number."""
    text = scalar(source, node, kinds)
    whole = (kinds.of(node).dtype or "").startswith(("int", "uint", "bool"))
    if whole or is_detached(node) or all(_is_asked(source, each) for each in uses):
        return text
    return f"{primary(text)}.detach()"


def is_detached(node: ast.expr) -> bool:
    """Whether `node` is `t.detach()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach"


def _is_asked(source: Source, node: ast.expr) -> bool:
    """Whether the number is part of a comparison, or of a test, and of nothing else."""
    parent = source.parents[node]
    while isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.BoolOp)):
        node, parent = parent, source.parents[parent]
    if isinstance(parent, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        return parent.test is node
    return isinstance(parent, ast.Compare)
