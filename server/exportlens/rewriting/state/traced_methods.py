"""Which methods of a Module an exported program may run, and which only eager mode does: `reset()`, or a report for a training loop."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from exportlens.rewriting.code.names import dotted
from exportlens.source.walking import walk


def led_to(cls: ast.ClassDef, names: Iterable[str]) -> set[str]:
    """The methods of `cls` that those of `names` lead to, themselves included."""
    methods = {each.name: each for each in cls.body if isinstance(each, ast.FunctionDef)}
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name not in methods:
            continue
        found.add(name)
        waiting += [each.attr for each in walk(methods[name]) if isinstance(each, ast.Attribute)]
    return found


def _extends(cls: ast.ClassDef, base: str, classes: list[ast.ClassDef]) -> bool:
    """Whether `cls`, or what it extends of the file, extends `base`."""
    names = {dotted(each) for each in cls.bases}
    return base in names or any(
        each.name in names
        and each is not cls
        and _extends(each, base, [one for one in classes if one is not each])
        for each in classes
    )


def untraced_methods(cls: ast.ClassDef, entries: set[str], statements: Sequence[ast.stmt]) -> set[str]:
    """The methods of `cls` that neither `entries` lead to, nor what other classes of the file name, nor functions that classes call;
    none where a base class of another file may call any."""
    methods = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)} - {"__init__"}
    classes = [each for each in statements if isinstance(each, ast.ClassDef)]
    functions = {
        each.name: each for each in statements if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    known = {each.name for each in classes}
    for base in (dotted(each) or "" for each in (one for parent in classes for one in parent.bases)):
        if base not in known and not base.endswith("Module") and _extends(cls, base, classes):
            return set()
    called_ones = {id(each.func) for each in walk(cls) if isinstance(each, ast.Call)}
    # What is handed on is called by others: `self.register_forward_hook(self.count)`.
    named = {
        each.attr for each in walk(cls) if isinstance(each, ast.Attribute) and id(each) not in called_ones
    }
    texts: set[str] = set()
    waiting: list[ast.AST] = list(classes)
    called: set[str] = set()
    while waiting:
        root = waiting.pop()
        inside = getattr(root, "name", "") == cls.name
        for each in walk(root):
            if isinstance(each, ast.Attribute) and not inside:
                named.add(each.attr)
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                texts.add(each.value)
            if isinstance(each, ast.Name) and each.id in functions and each.id not in called:
                called.add(each.id)
                waiting.append(functions[each.id])
    dunder = {each for each in methods if each.startswith("__") and each not in ("__repr__", "__str__")}
    return methods - led_to(cls, entries | dunder | named | (methods & texts))
