"""Numbers that a class has for all of its objects: `class Model(nn.Module): threshold = 0.5`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.names import assigned_pairs, dotted
from exportlens.rewriting.kinds.constant_numbers import constant_number
from exportlens.source.walking import walk


def class_constant(cls: ast.ClassDef, attr: str, statements: Iterable[ast.stmt]) -> ast.expr | None:
    """The number that the body of `cls`, or of a class of `statements` that it extends, has under the name; None where `statements`
    set it anywhere else, or set attributes by names that are computed."""
    statements = list(statements)
    classes = {each.name: each for each in statements if isinstance(each, ast.ClassDef)}
    order, values = [cls], list[ast.expr]()
    for node in order:
        values = _set_in(node, attr)
        if values or any(getattr(each, "name", "") == attr for each in node.body):
            break
        bases = [classes[name] for each in node.bases if (name := dotted(each)) in classes]
        order += [each for each in bases if each not in order]
    if len(values) != 1 or constant_number(values[0]) is None:
        return None
    if any(_may_set(each, attr) for one in (*statements, cls) for each in walk(one)):
        return None
    return values[0]


def _set_in(cls: ast.ClassDef, attr: str) -> list[ast.expr]:
    return [
        value
        for each in cls.body
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None
        for target, value in assigned_pairs(each)
        if dotted(target) == attr
    ]


def _may_set(node: ast.AST, attr: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == attr and not isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call) or (dotted(node.func) or "").rpartition(".")[2] not in _SETTING:
        return False
    named = [each.value for each in node.args if isinstance(each, ast.Constant)]
    return attr in named or not any(isinstance(each, str) for each in named)


_SETTING = frozenset({"setattr", "__setattr__", "delattr"})
