"""Lists that a loop fills until data stops it, and that are then filled up to the number of rounds that it has at most.

    while len(errors) < steps:                last = ...
        errors.append(errors[-1])     ->      errors = [torch.where(run, each, last) for each, run in zip(errors, runs)]

Behind that statement the list has an item for each round, whatever data says.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from dataclasses import dataclass

from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.lists.filling_up import filling_of
from exportlens.rewriting.memory.moving import writes
from exportlens.rewriting.sizes.same_number import is_same_number


@dataclass(frozen=True)
class Padding:
    """`statement` fills the list up with `item`, which is the list's own last one where it is None."""

    statement: ast.stmt
    item: ast.expr | None


def padding_of(source: Source, loop: ast.For, name: str, lists: Set[str]) -> Padding | None:
    """What fills the list `name`, one of the `lists` that `loop` fills, up behind it, in its own block, to as many items as
    `loop` has rounds."""
    rounds, function = rounds_of(loop), source.enclosing_function(loop)
    block, index = source.block_of(loop)
    if rounds is None or function is None:
        return None
    for each in block[index + 1 :]:
        found = filling_of(each, name)
        if found is not None:
            item = found.item
            whole = f"{name}[-1]" == ast.unparse(item)
            same = is_same_number(found.total, ast.parse(rounds, mode="eval").body, function)
            changed = _changed([loop, *block[index + 1 :]], rounds)
            if not same or changed or writes([item]) or (not whole and reads(item) & lists):
                return None
            return Padding(each, None if whole else item)
    return None


def _changed(nodes: Sequence[ast.AST], rounds: str) -> bool:
    """Whether `nodes` bind what tells the number of rounds anew, or set an attribute of that name."""
    told = ast.parse(rounds, mode="eval")
    attributes = {each.attr for each in ast.walk(told) if isinstance(each, ast.Attribute)}
    set_there = (
        each.attr
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    )
    return bool(reads(told) & set(bound(nodes)) or attributes & set(set_there))


def rounds_of(loop: ast.For) -> str | None:
    """How many rounds `loop` has that nothing leaves."""
    over = loop.iter
    if isinstance(over, ast.Call) and not over.keywords:
        called = ast.unparse(over.func)
        if called == "range" and (
            len(over.args) == 1 or (len(over.args) == 2 and ast.unparse(over.args[0]) == "0")
        ):
            return ast.unparse(over.args[-1])
        if called != "enumerate" or not over.args:
            return None
        over = over.args[0]
    return f"len({ast.unparse(over)})" if isinstance(over, (ast.Name, ast.Attribute)) else None
