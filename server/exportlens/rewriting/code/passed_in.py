"""What is passed in: a callable that a branch calls, and a constructor is given by those who build the class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.values import ClassValue, Instance
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk


def unread(source: Source, call: ast.Call, kinds: Kinds) -> str | None:
    """How the file writes an object of code that cannot be read here and that `call`, of an attribute of `self`, may call:
    somebody builds the class with it. None where nobody does.

    torch compiles the branches of torch.cond wherever it runs, so what it cannot trace raises in eager as well.
    """
    func = call.func
    if not isinstance(func, ast.Attribute) or dotted(func.value) != "self":
        return None
    owner = kinds.of(func.value).value
    cls = owner.cls if isinstance(owner, Instance) else None
    if not isinstance(cls, ClassValue):
        return None
    for position, name in _parameters(cls.node, func.attr):
        for built in _constructions(source, kinds, cls.name):
            given = next((key.value for key in built.keywords if key.arg == name), None)
            if given is None and position < len(built.args):
                given = built.args[position]
            if isinstance(given, ast.Call) and _is_unread(given.func, cls, kinds):
                return ast.unparse(given.func)
    return None


def _parameters(node: ast.ClassDef, attribute: str) -> Iterator[tuple[int, str]]:
    """Those of the constructor that `attribute` of the object is, each with its position in a call."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__" and method.args.args:
            names = [each.arg for each in arguments(method.args)][1:]
            for each in walk(method):
                if isinstance(each, ast.Assign) and isinstance(each.value, ast.Name):
                    kept = f"{method.args.args[0].arg}.{attribute}" in map(dotted, each.targets)
                    if kept and each.value.id in names:
                        yield names.index(each.value.id), each.value.id


def _constructions(source: Source, kinds: Kinds, name: str) -> Iterator[ast.Call]:
    """The calls of the class `name` in the file."""
    for statement in [*source.tree.body, *(each for chunk in kinds.around for each in chunk.body)]:
        for each in walk(statement):
            if isinstance(each, ast.Call) and dotted(each.func) == name:
                yield each


def _is_unread(func: ast.expr, cls: ClassValue, kinds: Kinds) -> bool:
    """Whether `func` belongs to another package than torch, whose code is not at hand."""
    head, _, rest = (dotted(func) or "").partition(".")
    name = kinds.modules.get(head, "") + ("." + rest if rest else "")
    top = name.partition(".")[0]
    if not kinds.modules.get(head) or top in ("torch", "functools"):
        return False
    path = cls.scope.workspace.find(top, cls.scope)
    return path is None or cls.scope.workspace.is_library(path)
