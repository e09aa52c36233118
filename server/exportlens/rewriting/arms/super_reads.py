"""Properties that are read by way of `super()`, as in `super().logits * 2`.

Measured on torch 2.13: Dynamo gives the property object itself, and what computes with it raises. torch.cond and while_loop compile
with Dynamo in eager, too, so that an arm which comes to such a method would no longer run at all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_READ = re.compile(r"super\([^()]*\)\.\w+\b(?!\s*\()")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def refuse_super_reads(source: Source, statements: Iterable[ast.AST], kinds: Kinds) -> None:
    """Raise Refused where `statements` may come to a method that reads a property of a base by `super()`: by the names alone
    that they, and the functions and classes of the file that have such names, say."""
    if not any(_READ.search(text) for text in (source.text, *(each.text for each in kinds.around))):
        return
    tree = [*source.tree.body, *(each for chunk in kinds.around for each in chunk.body)]
    classes = {each.name: each for top in tree for each in walk(top) if isinstance(each, ast.ClassDef)}
    reading = {
        (cls.name, method.name): read
        for cls in classes.values()
        for method in _methods(cls)
        for read in _reads_of_super(method, cls, classes)
    }
    said = _said(list(statements), tree) if reading else set()
    for (cls, method), read in reading.items():
        if cls in said and (method in said or method.startswith("__")):
            raise Refused(
                f"`{cls}.{method}` reads the property `super().{read}`, which torch traces in no arm: read it from `self`"
            )


def _methods(cls: ast.ClassDef) -> Iterator[Function]:
    return (each for each in cls.body if isinstance(each, _FUNCTIONS))


def _reads_of_super(method: Function, cls: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[str]:
    """The attributes that `method` reads by `super()` and does not call, but for those that a base in the file has as a method."""
    called = {id(each.func) for each in walk(method) if isinstance(each, ast.Call)}
    for each in walk(method):
        if (
            isinstance(each, ast.Attribute)
            and isinstance(each.value, ast.Call)
            and dotted(each.value.func) == "super"
            and id(each) not in called
            and not _is_method(each.attr, cls, classes)
        ):
            yield each.attr


def _is_method(attr: str, cls: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Whether the first base of `cls` that has `attr`, as far as the file tells, has it as something else than a property."""
    for base in (dotted(each) or "" for each in cls.bases):
        known = classes.get(base)
        if known is None or known is cls:
            continue
        own = [each for each in _methods(known) if each.name == attr]
        if own:
            return not any("property" in ast.unparse(each) for each in own[0].decorator_list)
        return _is_method(attr, known, classes)
    return False


def _said(statements: Sequence[ast.AST], tree: Sequence[ast.stmt]) -> set[str]:
    """The names that `statements` say, and those that the functions and classes of these names say."""
    named: dict[str, list[ast.AST]] = {}
    for top in tree:
        for each in walk(top):
            if isinstance(each, (*_FUNCTIONS, ast.ClassDef)):
                named.setdefault(each.name, []).append(each)
    said: set[str] = set()
    todo = list(statements)
    while todo:
        node = todo.pop()
        # Of a class that is named its construction alone runs.
        parts = (
            [each for each in _methods(node) if each.name == "__init__"]
            if isinstance(node, ast.ClassDef)
            else [node]
        )
        for part in parts:
            for each in walk(part):
                name = (
                    getattr(each, "attr", "") if isinstance(each, ast.Attribute) else getattr(each, "id", "")
                )
                if name and name not in said:
                    said.add(name)
                    todo += named.get(name, [])
    return said
