"""Watching: what statements write in place and what they return, as memory."""

from __future__ import annotations

import ast

from exportlens.inference.values import Array
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import loaded, writes_of


class Watch:
    """Notes what statements write and return."""

    def __init__(self) -> None:
        self.written: set[str] = set()
        # What of it may be memory of tensors: an item of a list that is set anew leaves the tensors as they are.
        self.in_tensors: set[str] = set()
        self.returned: set[str] = set()

    def see(self, node: ast.stmt, kinds: Kinds) -> None:
        for write in writes_of(node, kinds):
            _see_memory(write.base, kinds, self.written)
            if not (isinstance(write.node, ast.Assign) and _is_list(write.base, kinds)):
                _see_memory(write.base, kinds, self.in_tensors)
        if isinstance(node, ast.AugAssign) and kinds.of(loaded(node.target)).what == "unknown":
            _see_memory(node.target, kinds, self.written)
            _see_memory(node.target, kinds, self.in_tensors)
        if isinstance(node, ast.Return) and node.value is not None:
            _see_memory(node.value, kinds, self.returned)


def _is_list(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` is a list or a dict, no array."""
    kind = kinds.of(loaded(node))
    return kind.what == "container" and not isinstance(kind.value, Array)


def _see_memory(node: ast.expr, kinds: Kinds, found: set[str]) -> None:
    base: ast.expr = node
    roots = kinds.of(loaded(node)).roots
    while roots is None and isinstance(base, (ast.Subscript, ast.Attribute)):
        base = base.value
        roots = kinds.of(loaded(base)).roots
    path = dotted(node)
    if roots is not None:
        found |= roots
    elif path is not None:
        found.add(path)
