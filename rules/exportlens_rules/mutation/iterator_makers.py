"""Iterators that a model, or its file, keeps from call to call: what makes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.classes import class_order
from exportlens.inference.places import Place
from exportlens.inference.values import ClassValue
from exportlens.rewriting.code.names import dotted

from exportlens_rules.mutation.kept_holders import called_with

# Iterators that strict tracing goes on with, too (measured on torch 2.13).
_TRACED = frozenset({"count", "range", "reversed"})
# What makes an iterator: a call of anything else may give one that `next` leaves as it is.
_MAKERS = frozenset(
    {"count", "cycle", "iter", "chain", "islice", "accumulate", "zip", "enumerate", "map", "filter"}
    | {"reversed", "from_iterable", "product", "permutations", "combinations", "pairwise"}
)


def makers_of(place: Place, kept: ast.expr) -> list[ast.expr] | None:
    """What is bound to `kept`, an attribute of the object or a global of the file, where that all makes iterators, and none in the call
    itself. None where something else is bound, or nothing is known."""
    function = place.site.function
    path = dotted(kept)
    if function is None or path is None:
        return None
    found: list[ast.expr] | None = None
    if isinstance(kept, ast.Name):
        found = None if _is_bound(function.node, kept.id) else _of_file(place, kept.id)
    elif path.startswith("self.") and path.count(".") == 1 and function.owner is not None:
        traced = called_with(place, function.node)
        if not any(True for each in traced for _ in _bound_to(each, path)):
            found = [value for cls in _classes(function.owner) for value in _bound_to(cls, path)]
    if not found or not all(_makes_iterator(each, place) for each in found):
        return None
    return found


def is_traced_strictly(maker: ast.expr) -> bool:
    """Whether strict tracing goes on with the iterator that `maker` makes."""
    name = _called(maker)
    if name == "iter" and isinstance(maker, ast.Call) and maker.args:
        name = _called(maker.args[0])
    return name in _TRACED


def _classes(owner: ClassValue) -> list[ast.ClassDef]:
    return [each.node for each in class_order(owner) if isinstance(each, ClassValue)]


def _of_file(place: Place, name: str) -> list[ast.expr]:
    return [
        value
        for placed in place.site.scope.document.placed
        for statement in placed.chunk.body
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        for value in _bound_to(statement, name)
    ]


def _bound_to(root: ast.AST, path: str) -> Iterator[ast.expr]:
    for each in ast.walk(root):
        targets = each.targets if isinstance(each, ast.Assign) else ()
        if isinstance(each, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and each.value is not None:
            targets = [each.target]
        for target in targets:
            if dotted(target) == path and isinstance(
                each, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)
            ):
                assert each.value is not None
                yield each.value


def _is_bound(function: ast.AST, name: str) -> bool:
    arguments = [each.arg for each in ast.walk(function) if isinstance(each, ast.arg)]
    return name in arguments or any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )


def _makes_iterator(maker: ast.expr, place: Place) -> bool:
    if isinstance(maker, ast.GeneratorExp):
        return True
    name = _called(maker)
    return name in _MAKERS or _is_generator(name, place)


def _is_generator(name: str, place: Place) -> bool:
    """Whether a function or a method of the file that yields has the name."""
    return any(
        isinstance(each, ast.FunctionDef)
        and each.name == name
        and any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(each))
        for placed in place.site.scope.document.placed
        for statement in placed.chunk.body
        for each in ast.walk(statement)
    )


def _called(node: ast.expr) -> str:
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
