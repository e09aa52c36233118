"""Attributes that an arm sets together, one after the other: torch.cond gives each of them back.

self.low, self.high = low, high        ->    self.low = low
                                             self.high = high
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.liveness import becoming_arms
from exportlens.rewriting.code.names import assigned_pairs, dotted, every_name, fresh, reads, walk_own
from exportlens.rewriting.code.text import Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds


def set_one_by_one(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text where what becomes the arms of `node` sets each attribute that holds a tensor by a statement of its own; None where it
    does so already."""
    taken = every_name(source.tree)
    swaps = []
    for each in walk_own(becoming_arms(source, node)):
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and source.begins_line(each):
            target = each.targets[0]
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            if any(
                isinstance(one, ast.Attribute) and kinds.of(one).what == "tensor" for one in parts
            ) and all(dotted(one) is not None for one in parts):
                lines = _lines(source, each, parts, taken)
                swaps.append(source.swap(each, f"{source.newline}{source.indent_of(each)}".join(lines)))
    return read_again(replaced(source.text, swaps), source.start(node)) if swaps else None


def _lines(source: Source, statement: ast.Assign, parts: Sequence[ast.expr], taken: set[str]) -> list[str]:
    pairs = assigned_pairs(statement)
    if len(pairs) == len(parts) and all(_is_plain(value) for _, value in pairs[1:]):
        set_before: set[str] = set()
        read: list[str] = []
        for target, value in pairs:
            read += [each for each in _paths(value) if each in set_before]
            set_before.add(dotted(target) or "")
        if not read:
            return [f"{source.of(target)} = {source.of(value)}" for target, value in pairs]
    names = {
        id(each): fresh(each.attr.strip("_") or "state", taken)
        for each in parts
        if isinstance(each, ast.Attribute)
    }
    given = ", ".join(names.get(id(each)) or source.of(each) for each in parts)
    first = f"{given} = {source.of(statement.value)}"
    return [first, *(f"{source.of(each)} = {names[id(each)]}" for each in parts if id(each) in names)]


def _is_plain(value: ast.expr) -> bool:
    """Whether what `value` gives does not hang on what the targets before it are set to, but for what it names."""
    return not any(isinstance(each, (ast.Call, ast.NamedExpr, ast.Lambda)) for each in ast.walk(value))


def _paths(value: ast.expr) -> set[str]:
    paths = {dotted(each) or "" for each in ast.walk(value) if isinstance(each, ast.Attribute)}
    return paths | reads(value)
