"""Views of what is not known to be a tensor: `t = span[:1]` is one of the memory of `span` where that is a tensor.

The interpreter knows nothing of what an unknown call gives, nor whose memory a part of it shares; where the two meet in one
branch, torch.cond takes them for two tensors of the same memory all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from exportlens.inference import knowledge
from exportlens.inference.counted_uses import ATTRIBUTES_OF_TENSORS
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.kinds.kinds import Kinds


class UntoldViews:
    """Which names of `function` are views of which others, as far as nothing else tells whose memory they are. `read` are the names
    that meet."""

    def __init__(self, function: Function, kinds: Kinds, read: Collection[str]) -> None:
        self.function, self.kinds, self.read = function, kinds, read
        self._bound: dict[str, list[ast.expr]] = {}
        for each in ast.walk(function):
            if isinstance(each, ast.Assign):
                for target in each.targets:
                    if isinstance(target, ast.Name):
                        self._bound.setdefault(target.id, []).append(each.value)

    def owners(self, name: str) -> frozenset[str]:
        """The names that `name` may be a view of; empty where its memory is known."""
        kind = self.kinds.names.get(name)
        if kind is None or kind.what not in ("tensor", "unknown") or kind.roots != frozenset({name}):
            return frozenset()
        found = {name: True}
        for each in list(found):
            self._add_owners(each, found)
        return frozenset(found) - {name}

    def _add_owners(self, name: str, found: dict[str, bool]) -> None:
        for value in self._bound.get(name, ()):
            owner = _owner(value)
            known = None if owner is None else self.kinds.names.get(owner)
            if owner is None or owner in found or known is None or known.what != "unknown":
                continue
            # Two items of what is not known are parts of a tuple more often than rows of a tensor.
            if owner in self.read or not _is_item(value):
                found[owner] = True
                self._add_owners(owner, found)

    def is_tensor(self, name: str) -> bool:
        """Whether what is done with `name`, or how it is made, tells that it is a tensor."""
        kind = self.kinds.names.get(name)
        if kind is not None and kind.what == "tensor":
            return True
        cut = any(
            isinstance(each, ast.Subscript) and not _is_item(each) for each in self._bound.get(name, ())
        )
        return any(self._tells(each, name, cut) for each in ast.walk(self.function))

    def _tells(self, node: ast.AST, name: str, cut: bool) -> bool:
        if isinstance(node, ast.Attribute):
            return dotted(node.value) == name and node.attr in ATTRIBUTES_OF_TENSORS
        if not cut or not isinstance(node, (ast.BinOp, ast.Compare)):
            return False
        # What a slice gives is no number, and no list is computed with beside a tensor.
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
        others = [each for each in sides if dotted(each) != name]
        return len(others) < len(sides) and any(self.kinds.of(each).what == "tensor" for each in others)


def _owner(value: ast.expr) -> str | None:
    """The name of which `value` gives a view; None where it gives something else."""
    node: ast.expr = value
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            op = knowledge.lookup_method(node.func.attr)
            if op is None or not op.aliases:
                return None
            node = node.func.value
        else:
            return node.id if isinstance(node, ast.Name) and node is not value else None


def _is_item(value: ast.expr) -> bool:
    """Whether `value` is one item, as `rows[0]`: of a tensor a view, of a list anything."""
    return isinstance(value, ast.Subscript) and not any(
        isinstance(each, (ast.Slice, ast.Tuple)) for each in (value.slice, value.value)
    )
