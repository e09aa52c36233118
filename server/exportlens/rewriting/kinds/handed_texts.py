"""Texts that a Module hands down to parts of its own class and gets back from them: `out, path = self.left(x, path + "L")`."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import assigned_pairs, dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.source.walking import walk

_DEEPEST = 4


def is_text(source: Source, node: ast.expr, function: Function, depth: int = 0) -> bool:
    """Whether `node` of `function` certainly is text on one way at least."""
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.IfExp):
        return any(is_text(source, each, function, depth + 1) for each in (node.body, node.orelse))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return any(is_text(source, each, function, depth + 1) for each in (node.left, node.right))
    if not isinstance(node, ast.Name):
        return False
    if any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) for each in _default(node.id, function)
    ):
        return True
    return any(
        is_text(source, given, function, depth + 1)
        for each in walk(function)
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None
        for target, value in assigned_pairs(each)
        for given in _given(source, target, value, node.id, function)
    )


def _default(name: str, function: Function) -> list[ast.expr]:
    plain = [*function.args.posonlyargs, *function.args.args]
    pairs = [*zip(reversed(plain), reversed(function.args.defaults), strict=False)]
    pairs += [
        (one, value)
        for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if value
    ]
    return [value for one, value in pairs if one.arg == name]


def _given(
    source: Source, target: ast.expr, value: ast.expr, name: str, function: Function
) -> list[ast.expr]:
    """What `name` is bound to, where `target` is bound to `value`."""
    if isinstance(target, ast.Name):
        return [value] if target.id == name else []
    if not isinstance(target, (ast.Tuple, ast.List)) or not _is_own_part(source, value, function):
        return []
    places = [at for at, each in enumerate(target.elts) if isinstance(each, ast.Name) and each.id == name]
    return [
        each.value.elts[at]
        for each in walk(function)
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Tuple)
        for at in places
        if len(each.value.elts) == len(target.elts)
    ]


def _is_own_part(source: Source, node: ast.expr, function: Function) -> bool:
    """Whether `node` calls a part of the model that is of the class around `function`, whose `forward` that is, or `function` itself."""
    owner = source.parents.get(function)
    path = dotted(node.func) or "" if isinstance(node, ast.Call) else ""
    if not isinstance(owner, ast.ClassDef) or not path.startswith("self."):
        return False
    if path == f"self.{function.name}":
        return True
    return function.name == "forward" and any(
        isinstance(each, ast.Assign)
        and path in map(dotted, each.targets)
        and isinstance(each.value, ast.Call)
        and dotted(each.value.func) == owner.name
        for each in walk(owner)
    )
