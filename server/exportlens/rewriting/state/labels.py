"""Texts that say what something is called to people and dicts, `{"epsilon": self.epsilon}`, and name no attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.names import dotted
from exportlens.source.walking import walk

_BY_NAME = frozenset({"setattr", "getattr", "delattr", "hasattr", "vars"})
_OF_OBJECTS = frozenset({"__dict__", "_buffers", "_parameters", "_modules", "__slots__"})
_LOGGING = frozenset({"print", "log", "info", "debug", "warning", "add_scalar", "record"})


def labels(statements: Iterable[ast.stmt]) -> set[int]:
    """The ids of the texts in a file that are keys of dicts, or logged; none where attributes are looked up by computed names."""
    found: set[int] = set()
    for each in (node for statement in statements for node in walk(statement)):
        if isinstance(each, ast.Dict):
            found |= {id(key) for key in each.keys if key is not None}
        elif isinstance(each, ast.Subscript):
            found.add(id(each.slice))
        elif isinstance(each, ast.Attribute) and each.attr in (
            *_OF_OBJECTS,
            "__setattr__",
            "__getattribute__",
        ):
            return set()
        elif isinstance(each, ast.Call):
            name = dotted(each.func) or ""
            computed = len(each.args) < 2 or not isinstance(each.args[1], ast.Constant)
            if name in _BY_NAME and computed:
                return set()
            if name.rpartition(".")[2] in _LOGGING:
                found |= {id(argument) for argument in each.args}
    return found
