"""Parts that code around the classes makes and hands to the constructors of others: they are no models by themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.scopes import ModuleScope
from exportlens.source.document import Chunk
from exportlens.source.walking import walk


def handed_parts(scope: ModuleScope) -> set[str]:
    """The names of the classes whose objects are handed to the constructor of another class of the file."""
    classes = _classes(scope)
    found: set[str] = set()
    for _, statement in _making(scope, classes):
        for call in walk(statement):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in classes:
                found |= (_led_to(call, statement) & classes) - {call.func.id}
    return found


def making_chunks(scope: ModuleScope) -> list[Chunk]:
    """The chunks that tell what is handed."""
    return [chunk for chunk, _ in _making(scope, _classes(scope))]


def _classes(scope: ModuleScope) -> set[str]:
    return {
        name
        for name, bindings in scope.bindings.items()
        if any(isinstance(statement, ast.ClassDef) for _, statement in bindings)
    }


def _making(scope: ModuleScope, classes: set[str]) -> Iterator[tuple[Chunk, ast.stmt]]:
    """The functions and blocks that may make objects of two of the `classes`."""
    for placed in scope.document.placed:
        text = placed.chunk.text
        if sum(f"{name}(" in text for name in classes) > 1:
            for statement in placed.chunk.body:
                if not isinstance(statement, ast.ClassDef):
                    yield placed.chunk, statement


def _led_to(call: ast.Call, statement: ast.stmt) -> set[str]:
    """The names that the arguments of `call` are made with: their own, and those that what they name is bound to or gets."""
    found = _named(*call.args, *call.keywords)
    bound = [each for each in walk(statement) if isinstance(each, (ast.Assign, ast.AnnAssign, ast.Call))]
    known = -1
    while known != len(found):
        known = len(found)
        for each in bound:
            if isinstance(each, ast.Call):
                # `layers.append(Layer())`
                of = each.func.value if isinstance(each.func, ast.Attribute) else None
                if isinstance(of, ast.Name) and of.id in found:
                    found |= _named(*each.args)
                continue
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if each.value is not None and any(
                isinstance(one, ast.Name) and one.id in found for one in targets
            ):
                found |= _named(each.value)
    return found


def _named(*nodes: ast.AST) -> set[str]:
    return {each.id for node in nodes for each in walk(node) if isinstance(each, ast.Name)}
