"""Lists and dicts that a branch or loop body makes for itself: what is put into them is no effect on anything outside."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.text import Source
from exportlens.source.walking import walk


def own_containers(source: Source, statements: Sequence[ast.stmt]) -> set[str]:
    """The names of lists and dicts that `statements` make before they do anything else to them: what is put into one of these
    is seen by nobody else, as no operator gives a list or a dict."""
    own: set[str] = set()
    for node in (each for one in statements for each in walk(one)):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
            continue
        function = source.enclosing_function(node)
        made = isinstance(node.value, (ast.List, ast.Dict)) or ast.unparse(node.value) in ("list()", "dict()")
        if function is None or not made:
            continue
        block, index = source.block_of(node)
        behind = {id(each) for one in block[index:] for each in walk(one)}
        same = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == target.id]
        if all(id(each) in behind for each in same) and [
            each for each in same if not isinstance(each.ctx, ast.Load)
        ] == [target]:
            own.add(target.id)
    return own
