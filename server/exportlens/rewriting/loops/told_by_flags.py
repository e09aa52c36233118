"""Names that nothing binds before a loop, and that are read only where a flag says that a round has bound them.

    open = False                          open, entry = False, ...
    for price in prices:                  for price in prices:
        if open:                              if open:
            gain = price / entry      ->          gain = price / entry
        elif price > limit:                   elif price > limit:
            entry, open = price, True             entry, open = price, True

The flag leaves its first value only together with the name. So the name may begin with anything: that is never read.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

from exportlens.rewriting.code.liveness import always_bound, exits
from exportlens.rewriting.code.names import assigned_pairs, bound
from exportlens.rewriting.code.text import Function, Source
from exportlens.source.walking import walk

_COMPARING: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.FunctionDef, ast.AsyncFunctionDef, ast.Match)
_UNKNOWN = object()


def told_by_flag(source: Source, function: Function, loop: ast.For | ast.While, name: str) -> bool:
    """Whether each read of `name`, which only rounds of `loop` bind, stands behind what binds it, or where a flag of the loop tells
    that something has."""
    uses = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
    # What raises comes between the flag and the name; what is deleted is not there any more.
    if any(isinstance(each, ast.Try) for each in walk(function)) or any(
        isinstance(each.ctx, ast.Del) for each in uses
    ):
        return False
    flags = None
    for each in uses:
        if not isinstance(each.ctx, ast.Load) or _is_behind(source, each, function, name):
            continue
        if flags is None:
            flags = {
                flag: first
                for flag, first in _flags(source, function, loop)
                if _moves_with(source, function, flag, first, name)
            }
        if not any(_is_told(source, each, function, flag, first) for flag, first in flags.items()):
            return False
    return flags is not None


def _flags(source: Source, function: Function, loop: ast.For | ast.While) -> Iterable[tuple[str, object]]:
    """The names that begin with a constant right before the loop, in its block, and what they begin with."""
    block, index = source.block_of(loop)
    begun: dict[str, object] = {}
    for statement in block[:index]:
        for each in bound(statement):
            begun.pop(each, None)
        for target, value in _pairs(statement):
            if isinstance(target, ast.Name) and (first := _constant(value)) is not _UNKNOWN:
                begun[target.id] = first
    inside = set(bound(loop.body))
    # What is bound in front of the loop another time has the last value.
    return [(name, first) for name, first in begun.items() if name in inside]


def _moves_with(source: Source, function: Function, flag: str, first: object, name: str) -> bool:
    """Whether all that binds `flag` to another value than its `first` one binds `name` as well."""
    for statement in walk(function):
        if not isinstance(statement, ast.stmt) or isinstance(statement, _BLOCKS):
            continue
        if flag not in bound(statement):
            continue
        given = [value for target, value in _pairs(statement) if _is(target, flag)]
        if len(given) == 1 and _same(_constant(given[0]), first):
            continue
        if isinstance(statement, ast.Delete) or not _binds_beside(source, statement, function, name):
            return False
    targets = (each.target for each in walk(function) if isinstance(each, (ast.For, ast.NamedExpr)))
    return not any(flag in bound(each) for each in targets)


def _binds_beside(source: Source, statement: ast.stmt, function: Function, name: str) -> bool:
    """Whether `name` certainly has a value once `statement` and the plain statements around it have run."""
    if name in always_bound([statement]):
        return True
    block, index = source.block_of(statement)
    for each in block[index + 1 :]:
        if not isinstance(each, _PLAIN):
            break
        if name in always_bound([each]):
            return True
    return _is_behind(source, statement, function, name)


def _is_behind(source: Source, node: ast.AST, function: Function, name: str) -> bool:
    """Whether a statement before `node`, in one of the blocks around it, certainly binds `name`."""
    for inner in [node, *source.ancestors(node)]:
        if inner is function:
            return False
        if isinstance(inner, ast.stmt):
            block, index = source.block_of(inner)
            if name in always_bound(block[:index]):
                return True
    return False


def _is_told(source: Source, use: ast.AST, function: Function, flag: str, first: object) -> bool:
    """Whether `use` is only reached where `flag` has another value than its `first` one."""
    inner: ast.AST = use
    for outer in source.ancestors(use):
        if outer is function:
            return False
        if isinstance(outer, ast.BoolOp):
            before = outer.values[: outer.values.index(inner)]  # type: ignore[arg-type]
            if any(_tells(each, flag, first, isinstance(outer.op, ast.And)) for each in before):
                return True
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            if _tells(outer.test, flag, first, any(each is inner for each in body)):
                return True
        if isinstance(inner, ast.stmt):
            block, index = source.block_of(inner)
            if any(
                isinstance(each, ast.If)
                and "falls" not in exits(each.body)
                and _tells(each.test, flag, first, False)
                for each in block[:index]
            ):
                return True
        inner = outer
    return False


def _tells(test: ast.expr, flag: str, first: object, holds: bool) -> bool:
    """Whether `flag` has another value than its `first` one where `test` holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _tells(test.operand, flag, first, not holds)
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) == holds and any(
            _tells(each, flag, first, holds) for each in test.values
        )
    if _is(test, flag):
        return bool(first) != holds
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and _is(test.left, flag)):
        return False
    other, compare = _constant(test.comparators[0]), _COMPARING.get(type(test.ops[0]))
    if other is _UNKNOWN or compare is None:
        return False
    try:
        return bool(compare(first, other)) != holds
    except TypeError:
        return False


def _is(node: ast.AST, flag: str) -> bool:
    return isinstance(node, ast.Name) and node.id == flag


def _same(value: object, first: object) -> bool:
    return value is not _UNKNOWN and type(value) is type(first) and value == first


def _pairs(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    return assigned_pairs(statement) if isinstance(statement, (ast.Assign, ast.AnnAssign)) else []


def _constant(node: ast.expr) -> object:
    """The number, text or None that is written out there."""
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        value = node.operand.value
        return -value if isinstance(value, (int, float)) else _UNKNOWN
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str, type(None))):
        return node.value
    return _UNKNOWN
