"""Tensors that have as many rows as one of which an arm asks for rows: where that is made longer, it no longer fits the others.

Measured on torch 2.13: `rows, cols = torch.where(mask)`, and in an arm `table[rows, cols]` where `rows` has a row of zeros behind it if
it has none, has the exported program check that both are as long, whichever way is taken. Either only what asks is given the longer
one, or all are made longer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.arms.shared_masks import found_by
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import length_from_data
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import loaded, visit, writes_of
from exportlens.source.walking import walk


def others_from_data(statements: Sequence[ast.stmt], names: set[str], kinds: Kinds) -> set[str]:
    """What `statements` read beside `names` that has as many rows as data says: names, and texts of what picks rows there."""
    known = {name for name, kind in kinds.names.items() if length_from_data(kind)}
    return (reads(statements) & known - names) | set(_picking(statements, kinds))


def _picking(statements: Sequence[ast.stmt], kinds: Kinds) -> Iterator[str]:
    for statement in statements:
        for each in walk(statement):
            if isinstance(each, ast.Call) and found_by(each):
                yield ast.unparse(each)
            elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load):
                first = (
                    each.slice.elts[0]
                    if isinstance(each.slice, ast.Tuple) and each.slice.elts
                    else each.slice
                )
                if kinds.of(first).dtype == "bool":
                    yield ast.unparse(each)


def is_changed(statements: Sequence[ast.stmt], name: str, kinds: Kinds) -> bool:
    """Whether `statements` bind `name` anew, or may write to its memory."""
    roots = kinds.names[name].roots
    found = [name in bound(statements)]

    def see(statement: ast.stmt, now: Kinds) -> None:
        for write in writes_of(statement, now):
            written = now.of(loaded(write.base)).roots
            found.append(roots is None or written is None or bool(roots & written))

    visit(statements, kinds.copy(), see)
    return any(found)


def unpacked_with(source: Source, function: Function, branch: ast.stmt, name: str) -> set[str]:
    """The names that have as many rows as `name` at `branch`, as one statement found all of them: `rows, cols = torch.where(mask)`."""
    statement: ast.AST = branch
    anew: set[str] = set()
    while statement is not function and isinstance(statement, ast.stmt):
        block, index = source.block_of(statement)
        for each in reversed(block[:index]):
            if _is_copied(each):
                continue
            if name in bound(each):
                return _columns(each) - anew - {name} if name not in anew else set()
            anew |= set(bound(each))
        statement = source.parents[statement]
        if isinstance(statement, (ast.For, ast.While)):
            # What its rounds bind.
            anew |= set(bound(statement))
    return set()


def _is_copied(statement: ast.stmt) -> bool:
    """Whether `statement` is `rows = rows.clone()`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    name = statement.targets[0]
    return isinstance(name, ast.Name) and ast.unparse(statement.value) == f"{name.id}.clone()"


def _columns(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return set()
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Call) or not found_by(value):
        return set()
    names = {each.id for each in target.elts if isinstance(each, ast.Name)}
    return names if len(names) == len(target.elts) else set()
