"""What calls a function that returns a list of numbers, and chooses rows with it: `keep = self.suppress(boxes)`, then `boxes[keep]`."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.marked_uses import is_made_of
from exportlens.source.walking import walk


def callers_choose_rows(source: Source, function: Function, kinds: Kinds) -> bool:
    """Whether all that calls `function` binds what it gives to a name, and chooses rows with that, or asks for its length."""
    found = False
    own = source.tree.body
    for statement in [*own, *(each for chunk in kinds.around for each in chunk.body)]:
        uses = _uses_of_result(statement, function.name)
        if uses is None or (uses and statement not in own):
            return False
        found = found or bool(uses)
    return found


def given_as_tensor(source: Source, name: str) -> list[Replacement]:
    """What stands for what asks for the length of the list that the function `name` gives, or makes a tensor of it, where it gives one."""
    swaps = []
    for statement in source.tree.body:
        for use in _uses_of_result(statement, name) or []:
            outer = source.parents[use]
            if isinstance(outer, ast.Call) and not is_made_of(outer, use):
                # What `len` gives of a tensor is a number of Python, while a size may hang on data.
                swaps.append(source.swap(outer, f"{use.id}.shape[0]"))
            elif isinstance(outer, ast.Call):
                others = [
                    source.of(each.value)
                    for each in sorted(outer.keywords, key=lambda one: one.arg or "")
                    if each.arg == "device" or not source.of(each.value).endswith((".int64", ".long"))
                ]
                text = f"{use.id}.to({', '.join(others)})" if others else use.id
                swaps.append(source.swap(outer, text))
    return swaps


def _uses_of_result(statement: ast.stmt, name: str) -> list[ast.Name] | None:
    """The names in `statement` that stand for what the function `name` gives; None where more is done with it."""
    parents = {child: each for each in walk(statement) for child in ast.iter_child_nodes(each)}
    found: list[ast.Name] = []
    for named in walk(statement):
        if not isinstance(named, (ast.Name, ast.Attribute)):
            continue
        if (named.id if isinstance(named, ast.Name) else named.attr) != name:
            continue
        made = parents.get(parents[named])
        target = made.targets[0] if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
        called = isinstance(made, ast.Assign) and getattr(made.value, "func", None) is named
        if not isinstance(target, ast.Name) or made is None or not called:
            return None
        caller: ast.AST = made
        while caller in parents and not isinstance(caller, (ast.FunctionDef, ast.AsyncFunctionDef)):
            caller = parents[caller]
        uses = [each for each in walk(caller) if isinstance(each, ast.Name) and each.id == target.id]
        uses = [each for each in uses if each is not target]
        if not uses or not all(_asks_for_rows(each, parents) for each in uses):
            return None
        found += uses
    return found


def _asks_for_rows(use: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    outer = parents[use]
    counted = isinstance(outer, ast.Call) and ast.unparse(outer.func) == "len"
    chooses = isinstance(outer, ast.Subscript) and outer.slice is use
    return isinstance(use.ctx, ast.Load) and (counted or chooses or is_made_of(outer, use))
