"""A loop's body without `continue`: what follows a branch that continues is the other side of that branch.

for i in range(n):                  for i in range(n):
    y = step(i)                         y = step(i)
    if bad(y):                          if bad(y):
        count += 1            ->            count += 1
        continue                        else:
    return y                                return y
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from exportlens.rewriting.code.inlining import negated
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.text import Replacement, Source, replaced

Loop = ast.For | ast.While


def without_continue(source: Source, loop: Loop) -> tuple[Source, Loop] | None:
    """The text in which the body of `loop` does not continue, and the loop; None where that would write something twice."""
    if "continues" not in exits(loop.body) or not all(map(source.begins_line, (loop, *loop.body))):
        return None
    lines = _lines(source, loop.body, source.indent_of(loop.body[0]))
    if lines is None:
        return None
    begin, end = source.span(loop.body)
    begin = source.line_start(begin)
    changed = Source(replaced(source.text, [Replacement(begin, end, source.newline.join(lines))]))
    start = source.start(loop)
    same = (each for each in ast.walk(changed.tree) if isinstance(each, (ast.For, ast.While)))
    return changed, next(each for each in same if changed.start(each) == start)


def _lines(source: Source, block: Sequence[ast.stmt], indent: str) -> list[str] | None:
    index = next((at for at, each in enumerate(block) if "continues" in exits([each])), len(block))
    groups = itertools.groupby(block[:index], key=lambda each: id(source.block_of(each)[0]))
    lines = [source.block(list(group), indent) for _, group in groups]
    if index == len(block):
        return lines or [f"{indent}pass"]
    node, rest = block[index], list(block[index + 1 :])
    if isinstance(node, ast.Continue):
        return lines or [f"{indent}pass"]
    if not isinstance(node, ast.If):
        return None
    falls = ["falls" in exits(each) for each in (node.body, node.orelse)]
    if all(falls) and rest:
        return None
    inner = indent + source.indent_unit()
    then = [*node.body, *(rest if falls[0] else [])]
    other = [*node.orelse, *(rest if falls[1] else [])]
    test = source.of(node.test)
    if all(isinstance(each, (ast.Continue, ast.Pass)) for each in then):
        then, other = other, []
        test = negated(source, node.test)
    elif all(isinstance(each, (ast.Continue, ast.Pass)) for each in other):
        other = []
    body = _lines(source, then, inner)
    behind = _lines(source, other, inner) if other else []
    if body is None or behind is None:
        return None
    lines += [f"{indent}if {test}:", *body]
    return [*lines, f"{indent}else:", *behind] if behind else lines
