"""Methods of the model that write its state: in their own statements, by another name for it, or by what they call."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.helper_writes import path_written, written_state
from exportlens.rewriting.memory.model_methods import model_methods
from exportlens.source.walking import walk


def written_by_method(source: Source, function: Function, name: str, kinds: Kinds) -> str | None:
    """The attribute of `self` that the method `name` of the class of `function`, or one that it extends, writes, or a method that
    it calls; None where none does."""
    methods = model_methods(source, function, kinds)
    asked, todo = {name}, [name]
    while todo:
        for method in methods.get(todo.pop(), ()):
            inside = kinds.inside_of_own(method)
            for each in walk(method):
                path = path_written(each)
                if path.startswith("self."):
                    return path.split(".")[1]
                if not isinstance(each, ast.Call):
                    continue
                owner, _, called = (dotted(each.func) or "").rpartition(".")
                if owner == "self" and called in methods:
                    todo += [called] if called not in asked else []
                    asked.add(called)
                elif (state := written_state(each, inside)) is not None:
                    return f"{dotted(each.func) or ''}.{state}".removeprefix("self.")
            held = _written_by_other_names(method, inside)
            if held is not None:
                return held
    return None


def _written_by_other_names(method: ast.FunctionDef, inside: Kinds) -> str | None:
    """The attribute of `self` whose memory `method` writes, as `level = self.level` and then `level += x` do."""
    from exportlens.rewriting.memory.effects import visit
    from exportlens.rewriting.memory.watching import Watch

    for each in arguments(method.args):
        if each.arg not in inside.names:
            inside.names[each.arg] = Kind("unknown", roots=frozenset({f"given:{each.arg}"}))
    watch = Watch()
    visit(method.body, inside, watch.see)
    written = sorted(each for each in watch.written if each.startswith("self."))
    return written[0].split(".")[1] if written else None
