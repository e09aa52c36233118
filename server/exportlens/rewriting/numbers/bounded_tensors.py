"""`max(t, 1)` of a tensor: a tensor to tracing, but in eager the number where that is the larger one. Where the model needs a tensor
either way, torch bounds it."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

_LIMITS = {"max": "min", "min": "max"}
_NUMBERS = frozenset({"number", "size", "static", "none"})


def bounded(draft: Draft, data: ast.expr) -> list[Replacement]:
    """What makes tensors of the mixed `max()` and `min()` in `data`, a list. Raises Refused where one may be a number still."""
    return [swap for each in _mixed(draft, data) if (swap := _bounded(draft, each, data)) is not None]


def refuse_mixed(draft: Draft, data: ast.expr) -> None:
    """Raise Refused where an element of the list `data` may be a number in eager."""
    makings: list[ast.expr]
    if isinstance(data, ast.Name):
        function = draft.source.enclosing_function(data) or draft.source.tree
        makings = [
            each.value if isinstance(each, ast.Assign) else each
            for each in walk(function)
            if isinstance(each, (ast.Assign, ast.Call))
            and any(isinstance(one, ast.Name) and one.id == data.id for one in _owners(each))
        ]
    else:
        makings = [data]
    for value in makings:
        for each in _mixed(draft, value):
            if _bounded(draft, each, value) is not None:
                raise Refused(f"`{draft.source.of(each)}` is a number in eager where that is the bound")


def _owners(node: ast.Assign | ast.Call) -> list[ast.expr]:
    """What `name = ...` and `name.append(...)` make the elements of."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.func.value] if isinstance(node.func, ast.Attribute) else []


def _mixed(draft: Draft, data: ast.AST) -> list[ast.Call]:
    """The calls of `max` and `min` for several values."""
    return [
        each
        for each in walk(data)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id in _LIMITS
        and each.func.id not in draft.modules
        and len(each.args) > 1
    ]


def _bounded(draft: Draft, node: ast.Call, data: ast.expr) -> Replacement | None:
    """What makes a tensor of `node`; None where it is one, or has nothing of a tensor. Raises Refused."""
    source = draft.source
    kinds = _kinds(draft, node, data)
    whats = [kinds.of(each).what for each in node.args]
    if set(whats) == {"tensor"} or set(whats) <= _NUMBERS:
        return None
    first, second = node.args[0], node.args[-1]
    if len(node.args) == 2 and not node.keywords and whats[0] == "tensor" and whats[1] in _NUMBERS:
        assert isinstance(node.func, ast.Name)
        limit = _LIMITS[node.func.id]
        return source.swap(node, f"{draft.torch}.clamp({source.of(first)}, {limit}={source.of(second)})")
    raise Refused(f"`{source.of(node)}` may be a number in eager, and a tensor to tracing")


def _kinds(draft: Draft, node: ast.AST, data: ast.expr) -> Kinds:
    function = draft.source.enclosing_function(data)
    kinds = draft.kinds({})
    if function is not None:
        kinds = kinds_before(function, draft.source.enclosing_statement(data), kinds)
    for each in [data, *draft.source.ancestors(node)]:
        if isinstance(each, (ast.ListComp, ast.GeneratorExp)):
            kinds = kinds.in_comprehension(each)
    return kinds
