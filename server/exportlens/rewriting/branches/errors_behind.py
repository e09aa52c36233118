"""What raises behind a branch that returns on each of its ways is the branch's last way.

if t.sum() > 0:                 if t.sum() > 0:
    return t            ->          return t
raise ValueError("low")         else:
                                    raise ValueError("low")
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.text import Source


def last_way(node: ast.If) -> ast.If:
    """The last `elif` of `node`, or itself."""
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
    return node


def error_as_way(source: Source, node: ast.If) -> tuple[Source, ast.If] | None:
    """The text where the error behind `node` is its last way, and `node` of it; None where there is none."""
    last = last_way(node)
    block, index = source.block_of(node)
    rest = block[index + 1 :]
    if last.orelse or not rest or exits(rest) != {"raises"} or not source.begins_line(rest[0]):
        return None
    each: ast.If = node
    while exits(each.body) == {"returns"} and each is not last and isinstance(each.orelse[0], ast.If):
        each = each.orelse[0]
    if each is not last or exits(last.body) != {"returns"}:
        return None
    indent = source.indent_of(node)
    first, end = source.span(rest)
    begin = source.line_start(first)
    moved = source.block(rest, indent + source.indent_unit())
    text = f"{source.text[:begin].rstrip()}{source.newline}{indent}else:{source.newline}{moved}{source.text[end:]}"
    changed = Source(text)
    return changed, changed.branch_at(source.start(node))
