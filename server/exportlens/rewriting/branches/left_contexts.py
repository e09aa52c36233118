"""A branch that leaves `no_grad` from inside, as early exits do: it stands behind the block, with what follows in a block of its own.

    with torch.no_grad():                      with torch.no_grad():
        sure = y.softmax(-1).max()                 sure = y.softmax(-1).max()
        if sure > 0.9:                 ->      if sure > 0.9:
            return y                               return y

What the branch computes is still computed without gradients.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.arms.gradients import is_no_grad
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced

LEAVE_BEHIND = "Leave behind the `with` block"
# What is evaluated without computing anything.
_READ = (ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.expr_context)


def left_behind(source: Source, node: ast.AST) -> str | None:
    """The whole text with `node`, an `if` that leaves a block without gradients, behind it; None where it is no such branch."""
    owner = source.parents.get(node)
    if (
        not isinstance(node, ast.If)
        or not isinstance(owner, ast.With)
        or node.orelse
        or "falls" in exits(node.body)
        or "raises" in exits(node.body)
    ):
        return None
    if not all(is_no_grad(item.context_expr) and item.optional_vars is None for item in owner.items):
        return None
    if not all(map(source.begins_line, (owner, *owner.body, *node.body))):
        return None
    block, index = source.block_of(node)
    before, following = block[:index], block[index + 1 :]
    outer, inner, nl = source.indent_of(owner), source.indent_of(node), source.newline
    head = opening(source, owner)
    unit = inner.removeprefix(outer)
    lines = [head, source.block(before, inner)] if before else []
    test = source.text[source.start(node) : source.line_start(source.start(node.body[0]))].rstrip()
    lines += [
        *(
            f"{outer}{each}"
            for each in source.comments_between(_end_of(source, owner, before), source.start(node))
        )
    ]
    lines.append(f"{outer if before else ''}{test}")
    lines.append(_body(source, node, head, outer + unit, unit))
    if following:
        lines += [outer + head, source.block(following, inner)]
    start, end = source.start(owner), source.span([owner])[1]
    return replaced(source.text, [Replacement(start, end, nl.join(lines))])


def opening(source: Source, owner: ast.With) -> str:
    """The lines that enter the context, without what stands in the block."""
    colon = source.text.index(":", source.end(owner.items[-1].context_expr))
    return source.text[source.start(owner) : source.text.index("\n", colon)].rstrip()


def _end_of(source: Source, owner: ast.With, before: list[ast.stmt]) -> int:
    return source.span(before)[1] if before else source.end(owner.items[-1].context_expr)


def _body(source: Source, node: ast.If, head: str, indent: str, unit: str) -> str:
    """The body of the branch, and around what it computes the context `head`."""
    *rest, last = node.body
    value = last.value if isinstance(last, ast.Return) else None
    computes = value is not None and not all(isinstance(each, _READ) for each in ast.walk(value))
    if not rest and not computes:
        return source.block(node.body, indent)
    nl = source.newline
    lines = [indent + head]
    if rest:
        lines.append(source.block(rest, indent + unit))
    if not computes or value is None:
        return nl.join([*lines, source.block([last], indent)])
    name = fresh("result", every_name(source.tree))
    lines.append(f"{indent}{unit}{name} = {source.of(value)}")
    return nl.join([*lines, f"{indent}return {name}"])
