"""Walking trees: the nodes of `ast` below a node, several times as fast as `ast.walk`, which asks each node for all its fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Fields that never hold a node with anything to look at: names, numbers, and whether a name is read or written.
_PLAIN = frozenset(
    {
        "id",
        "attr",
        "ctx",
        "kind",
        "type_comment",
        "level",
        "module",
        "is_async",
        "simple",
        "conversion",
        "lineno",
    }
)
# Their lists hold names or None, too.
_MIXED = (ast.arguments, ast.Dict, ast.Global, ast.Nonlocal, ast.MatchClass)
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    plain = _PLAIN if kind is not ast.Constant else frozenset(kind._fields)
    return tuple(field for field in kind._fields if field not in plain)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below `node` in source order, `ast.Load` and its like left out."""
    kind = type(node)
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = _fields(kind)
    found: list[ast.AST] = []
    for field in fields:
        value = getattr(node, field, None)
        if type(value) is list:
            found += value if kind not in _MIXED else [item for item in value if isinstance(item, ast.AST)]
        elif value is not None and isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and all nodes below it, level by level as `ast.walk` does, `ast.Load` and its like left out."""
    waiting = [node]
    for each in waiting:
        yield each
        waiting += children(each)
