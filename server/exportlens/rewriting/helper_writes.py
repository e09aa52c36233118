"""Helpers that write in place to what they are given: `self.fill(mask, n)`, `put(out, row)`."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.kind import Kind
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.moving import writes
from exportlens.rewriting.names import arguments, dotted

_DEEPEST = 4


def written_arguments(call: ast.Call, kinds: Kinds) -> list[ast.expr]:
    """The arguments of `call`, of a function of the file or a method of the class, whose memory it writes in place."""
    function = kinds.functions.get(dotted(call.func) or "")
    if function is None or kinds.depth >= _DEEPEST or not _may_write(function, kinds):
        return []
    from exportlens.rewriting.effects import visit
    from exportlens.rewriting.watching import Watch

    given = _given(call, function)
    inside = kinds.inside_of(function)
    for each in arguments(function.args):
        kind = kinds.of(given[each.arg]) if each.arg in given else Kind("unknown")
        inside.names[each.arg] = replace(kind, roots=frozenset({_mark(each.arg)}))
    watch = Watch()
    visit(function.body, inside, watch.see)
    return [value for name, value in given.items() if _mark(name) in watch.written]


def _mark(name: str) -> str:
    return f"given:{name}"


def _may_write(function: ast.FunctionDef, kinds: Kinds) -> bool:
    calls = (each for each in ast.walk(function) if isinstance(each, ast.Call))
    return writes(function.body) or any((dotted(each.func) or "") in kinds.functions for each in calls)


def _given(call: ast.Call, function: ast.FunctionDef) -> dict[str, ast.expr]:
    """What `call` gives to parameters of `function`, as far as it is written out."""
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)
    if isinstance(call.func, ast.Attribute) and not static:
        places = places[1:]
    given: dict[str, ast.expr] = {}
    for name, value in zip(places, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        given[name] = value
    return given | {each.arg: each.value for each in call.keywords if each.arg}
