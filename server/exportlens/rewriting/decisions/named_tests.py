"""Conditions of which a part has a name of its own, that nothing else reads: `n = rows.numel()`, then `if n > 0:`.

What recognizes `rows.numel() > 0`, or `t.item() < limit` in a loop that is left there, does not have to look for names then.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import walk_own
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import repeatable

# What holds values for others to look at one by one.
_HOLDING = (
    ast.List,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Lambda,
)


def asked_at_once(source: Source, node: ast.AST, kinds: Kinds) -> tuple[Source, ast.If] | None:
    """The text where the condition of `node` says what the statements just before it name for it, and `node` in it; None where
    there are none, or another place reads the names as well."""
    if not isinstance(node, ast.If) or not source.begins_line(node):
        return None
    if source.text.startswith("elif", source.start(node)):
        return None
    function = source.enclosing_function(node)
    if function is None:
        return None
    block, index = source.block_of(node)
    swaps: list[Replacement] = []
    wanted = {each.id: each for each in walk_own(node.test) if isinstance(each, ast.Name)}
    for statement in reversed(block[:index]):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            break
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or target.id not in wanted:
            break
        if not _is_read_once(function, target.id) or not repeatable(statement.value, kinds):
            break
        if any(isinstance(each, _HOLDING) for each in ast.walk(statement.value)):
            break
        gone = source.without(statement)
        if gone is None:
            break
        swaps.append(gone)
        swaps.append(source.swap(wanted[target.id], primary(source.of(statement.value))))
    if not swaps:
        return None
    start = source.start(node)
    offset = start + sum(len(each.text) - (each.end - each.start) for each in swaps if each.start < start)
    changed = Source(replaced(source.text, swaps))
    return changed, changed.branch_at(offset)


def _is_read_once(function: ast.AST, name: str) -> bool:
    uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    told = any(
        isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names for each in ast.walk(function)
    )
    return not told and sum(isinstance(each.ctx, ast.Load) for each in uses) == 1
