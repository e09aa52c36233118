"""Lists of a tensor's numbers that are compared with one another, or of which single ones are read, as parts of the tensor.

tokens = t.tolist()
if tokens[:2] == tokens[-2:]:    ->    (t[:2] == t[-2:]).all(), where they are as long as each other
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.inference.tensors import dtype_family
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.listed_tensors import bound_once, tensor_of_list
from exportlens.source.walking import walk


def equal_parts(source: Source, node: ast.expr, kinds: Kinds) -> tuple[str, str] | None:
    """The two tensors of whose numbers `node` compares lists by `==` or `!=`; None where it does something else."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    if not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return None
    left, right = (_part(source, each, kinds) for each in (node.left, node.comparators[0]))
    if left is None or right is None or left[1] != right[1]:
        return None
    return left[0], right[0]


def items_of_tensors(source: Source, nodes: Iterable[ast.AST], kinds: Kinds) -> list[Replacement]:
    """`t[i].item()` for `tokens[i]`, where `tokens` is a list of the numbers of `t`."""
    swaps: list[Replacement] = []
    for each in (each for node in nodes for each in walk(node)):
        if not isinstance(each, ast.Subscript) or not isinstance(each.ctx, ast.Load):
            continue
        if isinstance(each.slice, (ast.Slice, ast.Tuple)) or kinds.of(each.slice).what not in (
            *("number", "size"),
        ):
            continue
        part = _part(source, each.value, kinds)
        if part is not None:
            swaps.append(source.swap(each, f"{primary(part[0])}[{source.of(each.slice)}].item()"))
    return swaps


def _part(source: Source, node: ast.expr, kinds: Kinds) -> tuple[str, str] | None:
    """The text of the tensor of whose numbers `node` is a list or a tuple, and which of both it is; None where that is not known. A
    list holds one and the same NaN to be equal to itself, which a tensor does not: one of floats is none."""
    tensor = tensor_of_list(source, node, kinds)
    if tensor is not None:
        if dtype_family(kinds.of(tensor).dtype) in ("float", "complex"):
            return None
        return source.of(tensor), "list"
    if isinstance(node, ast.Name):
        value = bound_once(source, node)
        # What is read before it is bound is that of the round before.
        behind = value is not None and source.end(value) <= source.start(node)
        return _part(source, value, kinds) if behind and value is not None else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple"):
        alone = len(node.args) == 1 and not node.keywords and node.func.id not in kinds.names
        inner = _part(source, node.args[0], kinds) if alone else None
        return None if inner is None else (inner[0], node.func.id)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is None:
        inner = _part(source, node.value, kinds)
        bounds = [each for each in (node.slice.lower, node.slice.upper) if each is not None]
        if inner is None or any(kinds.of(each).from_data for each in bounds):
            return None
        return f"{primary(inner[0])}[{source.of(node.slice)}]", inner[1]
    return None
