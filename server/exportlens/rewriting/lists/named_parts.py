"""Rounds of a loop that name what their one branch reads: `part = rows[i : i + 3]`, then `if part.sum() > 0: kept.append(part[0])`.

What reads such a loop as a comprehension does not have to look for names then.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.plain_items import is_plain
from exportlens.source.walking import walk

# What is one object each time that it is read by its name, and another each time that it is written out.
_MADE_ANEW = (ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def parts_written_in(source: Source, loop: ast.For, kinds: Kinds) -> tuple[Source, ast.For] | None:
    """The text where the branch at the end of `loop` says itself what the assignments before it name, and `loop` in it; None where
    there are none, or where more is done with such a name. `kinds` are those before the branch."""
    *named, last = loop.body
    function = source.enclosing_function(loop)
    if not named or not isinstance(last, ast.If) or function is None or not source.begins_line(last):
        return None
    texts: dict[str, str] = {}
    swaps: list[Replacement] = []
    for each in named:
        target = each.targets[0] if isinstance(each, ast.Assign) and len(each.targets) == 1 else None
        if not isinstance(each, ast.Assign) or not isinstance(target, ast.Name):
            return None
        gone = source.without(each)
        unlike = any(isinstance(one, _MADE_ANEW) for one in walk(each.value))
        if gone is None or unlike or not is_plain(each.value, kinds):
            return None
        texts[target.id] = primary(source.of(each.value, _read_as(source, each.value, texts)))
        swaps.append(gone)
    inside = reads(loop.body)
    everywhere = [each for each in walk(function) if isinstance(each, ast.Name) and each.id in texts]
    stores = [each.id for each in everywhere if not isinstance(each.ctx, ast.Load)]
    begin, end = source.start(loop), source.end(loop)
    if len(stores) != len(texts) or any(not begin <= source.start(each) < end for each in everywhere):
        return None
    if (inside - set(texts)) & set(bound(last)) or any(
        isinstance(each, (ast.Global, ast.Nonlocal)) for each in walk(function)
    ):
        return None
    swaps += _read_as(source, last, texts)
    changed = Source(replaced(source.text, swaps))
    found = (each for each in ast.walk(changed.tree) if isinstance(each, ast.For))
    same = next((each for each in found if changed.start(each) == begin), None)
    return None if same is None else (changed, same)


def _read_as(source: Source, node: ast.AST, texts: dict[str, str]) -> list[Replacement]:
    """`node` with the texts of the names."""
    return [
        source.swap(each, texts[each.id])
        for each in walk(node)
        if isinstance(each, ast.Name) and each.id in texts and isinstance(each.ctx, ast.Load)
    ]
