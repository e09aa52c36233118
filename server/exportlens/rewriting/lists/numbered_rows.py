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
from exportlens.source.walking import walk


def loop_over_tensor(
    source: Source, function: Function, name: str, append: ast.Expr, value: ast.expr, kinds: Kinds
) -> list[Replacement] | None:
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
            text = source.of(tensor)
            if kind.rank is None and _asks_one(each, value.id):
                # Nothing tells how many dimensions it has, but only of one does each item choose one number.
                text = f"{text}.flatten()"
            elif kind.rank != 1:
                return None
            whole = kind.what == "tensor" and kind.dtype in ("int", "int64")
            tensors = _Bases(source, function, kinds)
            alone = _only_choose(tensors, name, value.id, append)
            earlier = _chosen_while_filled(source, each, name)
            if not whole or not alone or earlier is None:
                return None
            return [source.swap(each.iter, text), *earlier]
    return None


def _chosen_while_filled(source: Source, loop: ast.For, name: str) -> list[Replacement] | None:
    """Rows that items of the list choose while `loop` fills it: one row of several, as torch.export asks no tensor for its number. What is
    in the list then is not known where nothing tells how many rounds there are. None where they choose in another way."""
    swaps = []
    items = {
        each.target.id
        for each in walk(loop)
        if isinstance(each, (ast.For, ast.comprehension))
        and isinstance(each.target, ast.Name)
        and ast.unparse(each.iter) == name
    }
    for each in walk(loop):
        if isinstance(each, ast.Name) and each.id in items and isinstance(each.ctx, ast.Load):
            outer = source.parents[each]
            if not isinstance(outer, ast.Subscript) or not isinstance(outer.ctx, ast.Load):
                return None
            swaps.append(source.swap(outer, f"{source.of(outer.value)}[{each.id}.unsqueeze(0)].select(0, 0)"))
    return swaps


def _asks_one(loop: ast.For, item: str) -> bool:
    """Whether a branch compares what `item` chooses: that is one number."""
    tests = [each.test for each in walk(loop) if isinstance(each, ast.If)]
    parts = [one for each in tests for one in (each.values if isinstance(each, ast.BoolOp) else [each])]
    return any(
        isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Name) and side.slice.id == item
        for each in parts
        if isinstance(each, ast.Compare)
        for side in (each.left, *each.comparators)
    )


def _read_out(node: ast.expr) -> ast.expr | None:
    """The tensor of `tensor.tolist()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist":
        return node.func.value
    return None


class _Bases:
    """What numbers choose from: of a tensor a tensor without dimensions chooses what its number does."""

    def __init__(self, source: Source, function: Function, kinds: Kinds) -> None:
        self.source, self.function, self.kinds = source, function, kinds
        self.known: dict[ast.stmt, Kinds] = {}

    def is_chosen_from(self, use: ast.Name) -> bool:
        """Whether `use` is an index of a tensor, alone or among others."""
        inner: ast.AST = use
        outer = self.source.parents[use]
        if isinstance(outer, ast.Tuple):
            inner, outer = outer, self.source.parents[outer]
        if not isinstance(outer, ast.Subscript) or outer.slice is not inner:
            return False
        statement = self.source.enclosing_statement(use)
        if statement not in self.known:
            self.known[statement] = kinds_before(self.function, statement, self.kinds)
        return self.known[statement].of(outer.value).what == "tensor"


def _only_choose(bases: _Bases, name: str, item: str, append: ast.Expr) -> bool:
    """Whether the numbers, which loops call `item`, and those in the list `name` choose rows and do nothing else."""
    source, function, called = bases.source, bases.function, {item}
    for use in named_in(function, name):
        outer = source.parents[use]
        if not isinstance(use.ctx, ast.Load) or isinstance(outer, ast.Attribute):
            continue
        if isinstance(outer, (ast.For, ast.comprehension)) and isinstance(outer.target, ast.Name):
            called.add(outer.target.id)
        elif not (
            bases.is_chosen_from(use)
            or is_made_of(outer, use)
            or isinstance(outer, ast.Return)
            or (isinstance(outer, ast.Call) and ast.unparse(outer.func) == "len")
        ):
            return False
    return all(
        not isinstance(each.ctx, ast.Load)
        or bases.is_chosen_from(each)
        or source.enclosing_statement(each) is append
        for one in called
        for each in named_in(function, one)
    )
