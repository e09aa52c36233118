"""Slices that a number bounds which is only known when the program runs, and sizes that are taken apart under names."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source


def bounds_open_slice(source: Source, node: ast.Slice) -> bool:
    """Whether `node` is read, or stands beside other parts of an index: tracing asks there whether its bounds are below zero."""
    parent = source.parents[node]
    beside = isinstance(parent, ast.Tuple)
    index = source.parents[parent] if beside else parent
    return isinstance(index, ast.Subscript) and (beside or isinstance(index.ctx, ast.Load))


def is_unpacked_size(function: Function, name: str) -> bool:
    """Whether `function` binds `name` once, to a size of a tensor: `batch, length, _ = x.shape`."""
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    return len(stores) == 1 and any(
        isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], (ast.Tuple, ast.List))
        and stores[0] in each.targets[0].elts
        and _is_shape(each.value)
        for each in ast.walk(function)
    )


def _is_shape(node: ast.expr) -> bool:
    """Whether `node` gives sizes: `x.shape`, `x.size()`, `x.shape[1:]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _is_shape(node.value)
    if isinstance(node, ast.Call):
        called = isinstance(node.func, ast.Attribute) and node.func.attr == "size"
        return called and not node.args and not node.keywords
    return isinstance(node, ast.Attribute) and node.attr == "shape" and dotted(node.value) is not None
