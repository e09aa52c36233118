"""Names that a method gives to what a Module keeps, `history = self.history` or `items = list(self.history)`, taken away: the
attribute stands in their places."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source, replaced


def under_its_name(draft: Draft, cls: ast.ClassDef, attr: str) -> Source | None:
    """The source without such names; None where there are none. Raises Refused where a name may outlive what it stands for."""
    source, path = draft.source, f"self.{attr}"
    swaps: list[Replacement] = []
    for function in (each for each in cls.body if isinstance(each, ast.FunctionDef)):
        for statement in ast.walk(function):
            if not isinstance(statement, ast.Assign):
                continue
            copied = isinstance(statement.value, ast.Call) and ast.unparse(statement.value) in (
                f"list({path})",
                f"tuple({path})",
            )
            if dotted(statement.value) != path and not (
                copied and not _writes_behind(cls, function, statement, path)
            ):
                continue
            name = dotted(statement.targets[0])
            if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name) or name is None:
                raise Refused(f"`{ast.unparse(statement)}` gives it to something else")
            names = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
            stores = [each for each in names if not isinstance(each.ctx, ast.Load)]
            anew = any(
                isinstance(each, ast.Attribute)
                and dotted(each) == path
                and not isinstance(each.ctx, ast.Load)
                for each in ast.walk(function)
            )
            taken = source.without(statement)
            if len(stores) != 1 or anew or taken is None or statement not in function.body:
                raise Refused(f"`{name}` may be another list than `{path}`, which it is a name for")
            swaps.append(taken)
            text = source.of(statement.value)
            swaps += [source.swap(each, text) for each in names if each not in stores]
    return Source(replaced(source.text, swaps)) if swaps else None


def _writes_behind(cls: ast.ClassDef, function: ast.FunctionDef, statement: ast.Assign, path: str) -> bool:
    """Whether what is behind `statement` may change the list: its items are other ones then."""
    if statement not in function.body:
        return True
    methods = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
    behind = function.body[function.body.index(statement) + 1 :]
    parts = [each for one in behind for each in ast.walk(one) if isinstance(each, ast.Attribute)]
    return any(
        dotted(each) == path or (dotted(each.value) == "self" and each.attr in methods) for each in parts
    )
