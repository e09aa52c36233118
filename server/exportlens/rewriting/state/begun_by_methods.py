"""State that the constructor begins by a method, `self.reset()`, begins where the constructor calls it: there it can be registered."""

from __future__ import annotations

import ast

from exportlens.finding import Fix
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.inlining import Callee, callee_of, inlined
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Source


def begun_by_method(draft: Draft, cls: ast.ClassDef, attribute: str) -> Fix | None:
    """The fix that writes out the one call of the constructor which begins `self.attribute`; None where there is none that can be."""
    source, path = draft.source, f"self.{attribute}"
    constructor = next(
        (each for each in cls.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None
    )
    if constructor is None or any(path == dotted(each) for each in ast.walk(constructor)):
        return None
    kinds = draft.kinds({})
    found: list[tuple[ast.Expr, Callee]] = []
    for each in constructor.body:
        if not isinstance(each, ast.Expr):
            continue
        callee = callee_of(source, each, kinds)
        if (
            callee is not None
            and callee.owner == "self"
            and any(dotted(one) == path for one in ast.walk(callee.method))
        ):
            found.append((each, callee))
    if len(found) != 1:
        return None
    call, callee = found[0]
    if f"self.{callee.method.name}" not in kinds.functions:
        # Another class of the file has it anew, and begins otherwise.
        return None
    sets = [
        each
        for each in ast.walk(callee.method)
        if dotted(each) == path and isinstance(getattr(each, "ctx", None), ast.Store)
    ]
    if len(sets) != 1 or callee.source.enclosing_statement(sets[0]) not in callee.method.body:
        return None
    text = inlined(source, call, draft.taken(source.tree), callee)
    if text is None:
        return None
    text = _without_repeated(source, constructor, call, callee.method, text)
    message = f"Write out `{source.of(call)}` in `__init__`"
    return draft.replace(message, [source.swap(call, text)], uses_torch=False)


def _without_repeated(
    source: Source, constructor: ast.FunctionDef, call: ast.Expr, method: ast.FunctionDef, text: str
) -> str:
    """`text`, what `call` does, without the lines which set an attribute to the constant that the constructor has set it to."""
    before = constructor.body[: constructor.body.index(call)]
    known = {
        path: ast.dump(each.value)
        for each in before
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
        for path in [dotted(each.targets[0]) or ""]
        if path.startswith("self.") and len(each.targets) == 1
    }
    again = {
        ast.unparse(each)
        for each in method.body
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and known.get(dotted(each.targets[0]) or "") == ast.dump(each.value)
    }
    often = [dotted(each) for one in before for each in ast.walk(one)]
    again = {each for each in again if often.count(each.partition(" = ")[0]) == 1}
    lines = text.split(source.newline)
    kept = [each for each in lines if each.strip() not in again]
    return source.newline.join(kept).lstrip(" \t") if kept else text
