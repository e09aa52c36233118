"""Attributes that an arm writes, and methods of the model that read them there: an arm writes a tensor of its own, of which
these know nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.model_methods import model_methods
from exportlens.source.walking import walk

# What gives out everything that a module holds.
_GIVING_OUT = frozenset(
    {
        "parameters",
        "named_parameters",
        "buffers",
        "named_buffers",
        "state_dict",
        "modules",
        "children",
        "apply",
    }
)


def refuse_read_elsewhere(
    source: Source, function: Function, statements: list[ast.stmt], path: str, kinds: Kinds
) -> None:
    """Raise Refused where `statements`, which write the attribute `path`, later call what reads it by another way."""
    if not path.startswith("self."):
        return
    mentioned = [
        source.start(each)
        for statement in statements
        for each in walk(statement)
        if isinstance(each, ast.Attribute) and dotted(each) == path
    ]
    for each in readers(source, function, statements, path, kinds):
        repeated = any(isinstance(one, (ast.For, ast.While)) for one in source.around(each, statements))
        if mentioned and (repeated or source.start(each) > min(mentioned)):
            raise Refused(f"`{source.of(each)}` reads `{path}`, which the branch writes a copy of")


def readers(
    source: Source, function: Function, statements: Iterable[ast.stmt], path: str, kinds: Kinds
) -> list[ast.expr]:
    """What in `statements` reads the attribute `path` of the model, or hands it on, under another name."""
    methods = model_methods(source, function, kinds)
    found: list[ast.expr] = []
    for statement in statements:
        for each in walk(statement):
            if isinstance(each, ast.Name) and each.id == "self" and isinstance(each.ctx, ast.Load):
                if not isinstance(source.parents[each], ast.Attribute):
                    found.append(each)
            elif isinstance(each, ast.Attribute):
                own = dotted(each)
                if own is None or not own.startswith("self."):
                    continue
                inner = isinstance(source.parents[each], ast.Attribute)
                if (path.startswith(f"{own}.") and not inner) or (
                    own.count(".") == 1
                    and (each.attr in _GIVING_OUT or _reads(each.attr, path.split(".")[1], methods, set()))
                ):
                    found.append(each)
    return found


def _reads(name: str, attribute: str, methods: dict[str, list[ast.FunctionDef]], seen: set[str]) -> bool:
    """Whether the method or property `name` reads `attribute` of the model, or another one that it calls does."""
    if name not in methods or name in seen:
        return False
    seen.add(name)
    named = [
        each.attr
        for method in methods[name]
        for each in walk(method)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self"
    ]
    return any(
        each == attribute or each in _GIVING_OUT or _reads(each, attribute, methods, seen) for each in named
    )
