"""Items of the dicts and lists that a Module keeps: which of its methods set them."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.text import Function, Source
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk


def sets(node: ast.Subscript, item: str) -> bool:
    return isinstance(node.ctx, ast.Store) and ast.unparse(node) == item


def is_set_elsewhere(source: Source, function: Function, item: str) -> bool:
    """Whether another method sets `item`, as `self.state["count"]`, or makes what holds it with such an item."""
    subscript = parse_python(item, mode="eval").body
    assert isinstance(subscript, ast.Subscript)
    owner, key = ast.unparse(subscript.value), subscript.slice
    cls = source.parents.get(function)
    for method in cls.body if isinstance(cls, ast.ClassDef) else ():
        for each in walk(method) if method is not function else ():
            if isinstance(each, ast.Subscript) and sets(each, item):
                return True
            made = each.value if isinstance(each, (ast.Assign, ast.AnnAssign)) else None
            targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
            if made is None or owner not in [ast.unparse(one) for one in targets if one is not None]:
                continue
            if isinstance(made, (ast.List, ast.ListComp)) or any(
                (isinstance(one, ast.Constant) and isinstance(key, ast.Constant) and one.value == key.value)
                or (isinstance(one, ast.keyword) and isinstance(key, ast.Constant) and one.arg == key.value)
                for one in walk(made)
            ):
                return True
    return False
