"""Inputs that may be left out, of which code asks for one where another is missing."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from exportlens.source.walking import walk


@dataclass(frozen=True)
class _Known:
    """What tests say of the inputs in some statements."""

    missing: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()


def missing_beside_given(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, names: Collection[str]
) -> list[str]:
    """Those of `names` without which `function` runs code that another of them needs: `if embeds is None: ... pixels ...`.

    Neither a run without all of them reaches that code, nor one with all.
    """
    if isinstance(function, ast.Lambda):
        return []
    found = {
        name
        for known, node in _statements(function.body, _Known(), names)
        for name in _beside(known, node, names)
    }
    return [name for name in names if name in found]


def _beside(known: _Known, node: ast.stmt, names: Collection[str]) -> Iterator[str]:
    """The inputs that are missing at `node`, where another one is given or read."""
    if not known.missing:
        return
    read = {
        each.id
        for each in walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id in names
    }
    for name in known.missing:
        if (known.given | read) - known.missing:
            yield name


def _statements(
    body: Sequence[ast.stmt], known: _Known, names: Collection[str]
) -> Iterator[tuple[_Known, ast.stmt]]:
    """The simple statements in `body`, each with what is known of `names` there."""
    for node in body:
        if isinstance(node, ast.If):
            where, otherwise = _told(node.test, True, names), _told(node.test, False, names)
            yield from _statements(node.body, _both(known, where), names)
            yield from _statements(node.orelse, _both(known, otherwise), names)
            if isinstance(node.body[-1], (ast.Return, ast.Raise)):
                known = _both(known, otherwise)
            elif node.orelse and isinstance(node.orelse[-1], (ast.Return, ast.Raise)):
                known = _both(known, where)
        elif isinstance(node, (ast.With, ast.For, ast.While, ast.Try)):
            yield from _statements(node.body, known, names)
        else:
            yield known, node
        # The input stays missing when its name is given something else.
        known = _Known(known.missing, known.given - _bound(node))


def _bound(node: ast.stmt) -> set[str]:
    return {each.id for each in walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _both(first: _Known, second: _Known) -> _Known:
    return _Known(first.missing | second.missing, first.given | second.given)


def _told(test: ast.expr, holds: bool, names: Collection[str]) -> _Known:
    """What `test` says of `names` where it holds, or where it does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _told(test.operand, not holds, names)
    if isinstance(test, ast.BoolOp):
        told = _Known()
        if isinstance(test.op, ast.And) is holds:
            for each in test.values:
                told = _both(told, _told(each, holds, names))
        return told
    if (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id in names
        and isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    ):
        none = isinstance(test.ops[0], (ast.Is, ast.Eq)) is holds
        name = frozenset([test.left.id])
        return _Known(name, frozenset()) if none else _Known(frozenset(), name)
    return _Known()
