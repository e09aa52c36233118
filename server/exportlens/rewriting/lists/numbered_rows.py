"""Numbers that a loop takes out of a tensor and that only choose rows: they may stay in the tensor.

    for i in order.tolist():                            for i in order:
        if all(far(x[i], x[j]) for j in keep):    ->        if all(far(x[i], x[j]) for j in keep):
            keep.append(i)                                      keep.append(i)

A branch takes no number of data from around it, but each item of a tensor is one.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.marked_uses import is_made_of, named_in
from exportlens.rewriting.memory.effects import kinds_before


def loop_over_tensor(
    source: Source, function: Function, name: str, append: ast.Expr, value: ast.expr, kinds: Kinds
) -> Replacement | None:
    """What goes through the tensor where a loop around `append` goes through its numbers, of which `value` is appended to the list
    `name`; None where more is done with the numbers than to choose rows."""
    if not isinstance(value, ast.Name):
        return None
    for each in source.ancestors(append):
        if isinstance(each, ast.For) and isinstance(each.target, ast.Name) and each.target.id == value.id:
            tensor = _read_out(each.iter)
            if tensor is None:
                return None
            kind = kinds_before(function, each, kinds).of(tensor)
            whole = kind.what == "tensor" and kind.dtype in ("int", "int64") and kind.rank in (1, None)
            alone = _only_choose(source, function, name, value.id, append)
            return source.swap(each.iter, source.of(tensor)) if whole and alone else None
    return None


def _read_out(node: ast.expr) -> ast.expr | None:
    """The tensor of `tensor.tolist()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist":
        return node.func.value
    return None


def _only_choose(source: Source, function: Function, name: str, item: str, append: ast.Expr) -> bool:
    """Whether the numbers, which loops call `item`, and those in the list `name` choose rows and do nothing else."""
    called = {item}
    for use in named_in(function, name):
        outer = source.parents[use]
        if not isinstance(use.ctx, ast.Load) or isinstance(outer, ast.Attribute):
            continue
        if isinstance(outer, (ast.For, ast.comprehension)) and isinstance(outer.target, ast.Name):
            called.add(outer.target.id)
        elif not (
            _chooses(source, use)
            or is_made_of(outer, use)
            or isinstance(outer, ast.Return)
            or (isinstance(outer, ast.Call) and ast.unparse(outer.func) == "len")
        ):
            return False
    return all(
        not isinstance(each.ctx, ast.Load)
        or _chooses(source, each)
        or source.enclosing_statement(each) is append
        for one in called
        for each in named_in(function, one)
    )


def _chooses(source: Source, use: ast.Name) -> bool:
    """Whether `use` is an index, alone or among others."""
    inner: ast.AST = use
    outer = source.parents[use]
    if isinstance(outer, ast.Tuple):
        inner, outer = outer, source.parents[outer]
    return isinstance(outer, ast.Subscript) and outer.slice is inner
