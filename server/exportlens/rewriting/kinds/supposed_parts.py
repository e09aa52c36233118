"""What comes from an argument that is taken for a tensor without evidence: it may be a number of Python after all."""

from __future__ import annotations

import ast
from collections.abc import Collection

from exportlens.rewriting.code.names import reads
from exportlens.rewriting.code.text import Function
from exportlens.source.walking import walk


def stems_from(function: Function | None, node: ast.expr, supposed: Collection[str]) -> bool:
    """Whether `node` computes with one of the arguments `supposed`, or with what assignments and loops take from them."""
    if not supposed or function is None:
        return False
    names, before = set(supposed), 0
    while len(names) > before:
        before = len(names)
        for each in walk(function):
            source = (
                each.iter
                if isinstance(each, ast.For)
                else each.value
                if isinstance(each, ast.Assign)
                else None
            )
            if source is not None and not names.isdisjoint(reads(source)):
                targets = [each.target] if isinstance(each, ast.For) else getattr(each, "targets", [])
                names.update(
                    one.id for target in targets for one in walk(target) if isinstance(one, ast.Name)
                )
    return not names.isdisjoint(reads(node))
