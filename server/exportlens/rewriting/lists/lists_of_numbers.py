"""Lists of tensors that are asked for what only numbers give: `values = t.tolist()`, then `values[-1] - values[0]`.

A tensor of more dimensions lists its rows, and lists raise there: that the code runs tells that the tensor has one dimension.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import NamedTuple

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.text import Function


class Asks(NamedTuple):
    """What asks for numbers: what is done with an item at once, and what a loop does that goes through a list."""

    item: Callable[[ast.expr], bool]
    gone_through: Callable[[ast.expr], bool]


# What keeps the items of a list.
_KEEPING = frozenset({"sorted", "list", "tuple", "reversed"})
_ADDING = frozenset(
    {"sum", "math.fsum", "statistics.mean", "statistics.fmean", "statistics.stdev", "statistics.pstdev"}
)
_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def is_of_numbers(draft: Draft, listed: ast.expr, asks: Asks) -> bool:
    """Whether the list `listed`, or what is sliced of it, is used in any case as lists of lists are not."""
    function = draft.source.enclosing_function(listed)
    return function is not None and _is_asked(draft, function, listed, asks, False, frozenset())


def _is_asked(
    draft: Draft,
    function: Function,
    listed: ast.expr,
    asks: Asks,
    cut: bool,
    seen: frozenset[str],
) -> bool:
    # Of a list that is cut to nothing no round tells anything.
    if not cut and _is_certain(draft, _of_comprehension(draft, listed)) and asks.gone_through(listed):
        return True
    parent = draft.source.parents[listed]
    if isinstance(parent, ast.Call) and parent.args and parent.args[0] is listed:
        called = draft.qualified(parent.func)
        if called in _KEEPING:
            return _is_asked(draft, function, parent, asks, cut, seen)
        # Nothing is added up of what was cut to nothing.
        return called in _ADDING and len(parent.args) == 1 and not cut and _is_certain(draft, parent)
    if isinstance(parent, ast.Subscript) and parent.value is listed and isinstance(parent.ctx, ast.Load):
        if isinstance(parent.slice, ast.Slice):
            return _is_asked(draft, function, parent, asks, True, seen)
        return _is_certain(draft, parent) and asks.item(parent)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0]
    if isinstance(target, (ast.Tuple, ast.List)):
        return not cut and _is_unpacked(draft, function, parent, target, asks.item)
    if not isinstance(target, ast.Name) or target.id in seen:
        return False
    same = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id]
    if [each for each in same if not isinstance(each.ctx, ast.Load)] != [target]:
        return False
    certain = {id(each) for one in _always_run_after(draft, parent) for each in ast.walk(one)}
    return any(
        _is_asked(draft, function, each, asks, cut, seen | {target.id})
        for each in same
        if id(each) in certain
    )


def _of_comprehension(draft: Draft, listed: ast.expr) -> ast.expr:
    """The comprehension that goes through `listed` first, which is where it is computed; else `listed`."""
    inner: ast.AST = listed
    for each in draft.source.ancestors(listed):
        if isinstance(each, (ast.ListComp, ast.SetComp, ast.DictComp)) and each.generators[0] is inner:
            return each
        if not isinstance(each, (ast.Call, ast.comprehension)):
            break
        inner = each
    return listed


def _is_unpacked(
    draft: Draft,
    function: Function,
    statement: ast.Assign,
    target: ast.Tuple | ast.List,
    takes_numbers: Callable[[ast.expr], bool],
) -> bool:
    """Whether one of the names that the list is unpacked to, `low, high = t.tolist()`, is used as a number in any case."""
    names = {each.id for each in target.elts if isinstance(each, ast.Name)}
    same = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id in names]
    if len([each for each in same if not isinstance(each.ctx, ast.Load)]) != len(names):
        return False
    certain = {id(each) for one in _always_run_after(draft, statement) for each in ast.walk(one)}
    return any(id(each) in certain and _is_certain(draft, each) and takes_numbers(each) for each in same)


def _always_run_after(draft: Draft, statement: ast.stmt) -> Sequence[ast.AST]:
    """What runs behind `statement` in its block whenever it runs: of a branch and a loop their head alone."""
    block, index = draft.source.block_of(statement)
    found: list[ast.AST] = []
    for each in block[index + 1 :]:
        if isinstance(each, (ast.If, ast.While)):
            found.append(each.test)
        elif isinstance(each, ast.For):
            found.append(each.iter)
        elif isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)):
            found.append(each)
        if any(isinstance(one, _LEAVING) for one in ast.walk(each)) or isinstance(each, (ast.With, ast.Try)):
            break
    return found


def _is_certain(draft: Draft, node: ast.expr) -> bool:
    """Whether `node` is computed whenever its statement is."""
    inner: ast.AST = node
    for each in draft.source.ancestors(node):
        if isinstance(each, ast.stmt):
            return True
        if isinstance(
            each, (ast.Lambda, ast.comprehension, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
        ):
            return False
        if isinstance(each, ast.IfExp) and each.test is not inner:
            return False
        if isinstance(each, ast.BoolOp) and each.values[0] is not inner:
            return False
        inner = each
    return False
