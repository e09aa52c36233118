"""Whether an item that is read of a list may be written in place: the row of a tensor that would stand for it is a copy."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.helper_writes import called_function, written_arguments
from exportlens.rewriting.memory.moving import may_write, written_bases
from exportlens.source.walking import walk


def writes_items(function: Function, name: str) -> bool:
    """Whether an item of the list `name`, or what is computed of one, may be written in place: a row that stands for it is a copy."""
    reached, size = {name}, 0
    bindings = [
        each
        for each in walk(function)
        if isinstance(each, (ast.Assign, ast.AnnAssign, ast.For, ast.NamedExpr))
    ]
    while len(reached) > size:
        size = len(reached)
        for each in bindings:
            value = each.iter if isinstance(each, ast.For) else each.value
            if value is not None and reads(value) & reached:
                reached |= set(bound(each.target if isinstance(each, ast.For) else each))
    return any(reads(base) & reached for base in written_bases(function))


def is_handed_to_writer(source: Source, read: ast.expr, kinds: Kinds) -> bool:
    """Whether a call that takes the item may write it in place."""
    statement = source.enclosing_statement(read)
    for each in source.ancestors(read):
        if each is statement:
            return False
        if isinstance(each, ast.Call):
            known = called_function(each, kinds)[0] is not None
            if any(read in walk(given) for given in written_arguments(each, kinds)):
                return True
            if not known and may_write([each], kinds):
                return True
    return False
