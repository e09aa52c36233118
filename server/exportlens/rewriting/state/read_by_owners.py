"""A number that a Module counts, read by the Module that holds it: `self.step.n_resets`, where `self.step = Step()`."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Source
from exportlens.source.walking import walk


def owner_that_reads(draft: Draft, read: ast.Attribute, made: str) -> ast.ClassDef:
    """The class around `read`, `self.m.attr`, which, or a class that it extends, makes `self.m` once, as an object of the class `made`.
    Raises Refused."""
    source = draft.source
    refused = Refused(f"`{ast.unparse(read)}` is used as well, perhaps of the same object")
    owner = next((each for each in source.ancestors(read) if isinstance(each, ast.ClassDef)), None)
    path = dotted(read.value) or ""
    if owner is None or not path.startswith("self.") or path.count(".") != 1:
        raise refused
    if not isinstance(read.ctx, ast.Load) or isinstance(source.parents[read], ast.Attribute):
        raise refused
    function = source.enclosing_function(read)
    if function is None or function not in owner.body or function.name == "__init__":
        raise refused
    stores = [
        (one, one.parents[each])
        for one in [source, *(Source(chunk.text) for chunk in draft.extended())]
        for each in walk(one.tree)
        if isinstance(each, ast.Attribute)
        and each.attr == path.removeprefix("self.")
        and not isinstance(each.ctx, ast.Load)
    ]
    home, begin = stores[0] if len(stores) == 1 else (source, None)
    if not isinstance(begin, ast.Assign) or len(begin.targets) != 1 or dotted(begin.targets[0]) != path:
        raise refused
    called = begin.value.func if isinstance(begin.value, ast.Call) else None
    first = home.enclosing_function(begin)
    inside = (
        first in owner.body if home is source else isinstance(home.parents.get(first or begin), ast.ClassDef)
    )
    if dotted(called or begin) != made or not inside or getattr(first, "name", "") != "__init__":
        raise refused
    same = [
        each
        for each in walk(function)
        if isinstance(each, ast.Attribute) and dotted(each) == dotted(read) and each is not read
    ]
    if same:
        raise Refused(f"`{ast.unparse(read)}` is read several times: two numbers to the tracer")
    return owner
