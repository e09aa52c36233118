"""Whether a name still stands for a function's parameter where it is read."""

from __future__ import annotations

import ast

from exportlens.source.walking import walk

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef)
Binding = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For


def stands_for_another(function: ast.AST, name: str, node: ast.expr) -> bool:
    """Whether `name` is bound to something else where `node` stands in `function`: after `x = self.encoder(x)`, or in a lambda
    or a comprehension that has the name for itself.
    """
    return any(
        (
            isinstance(outer, _SCOPES)
            and outer is not function
            and name in _names_of(outer)
            and any(inner is node for inner in walk(outer))
        )
        or (
            isinstance(outer, Binding)
            and outer.lineno < node.lineno
            and name in _stored_by(outer)
            and not _is_of_its_own(outer, name)
        )
        for outer in walk(function)
    )


def was_set(function: ast.AST, name: str, node: ast.Attribute) -> bool:
    """Whether `function` sets the attribute `node` of `name` before: any object has what it was given."""
    return any(
        isinstance(other, ast.Attribute)
        and other.attr == node.attr
        and isinstance(other.ctx, ast.Store)
        and other.lineno < node.lineno
        and isinstance(other.value, ast.Name)
        and other.value.id == name
        for other in walk(function)
    )


def _stored_by(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _names_of(scope: ast.AST) -> set[str]:
    return _stored_by(scope) | {part.arg for part in walk(scope) if isinstance(part, ast.arg)}


def _is_of_its_own(binding: Binding, name: str) -> bool:
    """`graph = graph.to(device)`: what a method of an object gives is mostly like it."""
    value: ast.expr | None = None if isinstance(binding, ast.For) else binding.value
    while isinstance(value, (ast.Attribute, ast.Call)):
        value = value.value if isinstance(value, ast.Attribute) else value.func
    return isinstance(value, ast.Name) and value.id == name
