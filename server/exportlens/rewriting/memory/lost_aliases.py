"""Refusals of rewrites whose result has memory of its own, where a later write in place would have reached another tensor."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.callers import callers_write
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.afterwards import afterwards


def refuse_lost_alias(source: Source, node: ast.IfExp, kinds: Kinds) -> None:
    """What torch.cond gives has memory of its own: a write in place would no longer reach what a side shares memory with."""
    shared = [arm for arm in (node.body, node.orelse) if not kinds.of(arm).fresh]
    statement = source.enclosing_statement(node)
    function = source.enclosing_function(statement)
    if not shared or function is None:
        return
    after = kinds.copy()
    after.run([statement])
    written = afterwards(source, statement, function, after).written
    for arm in shared:
        roots = kinds.of(arm).roots
        if isinstance(statement, ast.Return) and callers_write(source, function, kinds):
            raise Refused(f"`{ast.unparse(arm)}` is handed on, and a caller writes it in place")
        if (roots is None and written) or (roots and roots & written):
            raise Refused(
                f"`{ast.unparse(arm)}` shares memory with another tensor, and a later line of the function writes in place"
            )


def refuse_later_writes(source: Source, node: ast.expr) -> None:
    """What torch.sort gives has memory of its own, where `sorted` hands on the very tensors."""
    function = source.enclosing_function(source.enclosing_statement(node))
    for each in ast.walk(function) if function is not None else ():
        if getattr(each, "lineno", 0) >= node.lineno and _writes_in_place(each):
            raise Refused(
                "a later line of the function writes in place, perhaps to one of the sorted tensors"
            )


def _writes_in_place(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return name.endswith("_") and not name.endswith("__")
    return isinstance(node, ast.keyword) and node.arg == "out"
