"""A list whose name is bound again to what is made of it, `keep = torch.stack(keep)`: until then it gets a name of its own."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import append_of, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.lists.marked_uses import named_in
from exportlens.source.walking import walk


def named_apart(source: Source, node: ast.If) -> tuple[Source, ast.If]:
    """The text where a list that `node` appends to has another name than what is made of it behind, and `node` of it."""
    function = source.enclosing_function(node)
    appends = [append_of(each) for each in walk(node) if isinstance(each, ast.Expr)]
    swaps: list[Replacement] = []
    for name in dict.fromkeys(each[0] for each in appends if each is not None):
        uses = named_in(function, name) if function is not None else []
        stores = [source.parents[each] for each in uses if not isinstance(each.ctx, ast.Load)]
        again = stores[-1] if len(stores) == 2 else None
        if function is None or again not in function.body or not isinstance(again, ast.Assign):
            continue
        if len(again.targets) > 1 or source.start(again) < source.end(node):
            continue
        if not isinstance(stores[0], ast.Assign) or not isinstance(stores[0].value, ast.List):
            continue
        other = fresh(f"{name}_items", every_name(source.tree))
        early = [
            each
            for each in uses
            if each is not again.targets[0] and source.start(each) < source.end(again.value)
        ]
        swaps += [source.swap(each, other) for each in early]
    if not swaps:
        return source, node
    begin = source.start(node)
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= begin)
    changed = Source(replaced(source.text, swaps))
    found = (each for each in walk(changed.tree) if isinstance(each, ast.If))
    return changed, next(each for each in found if changed.start(each) == begin + moved)
