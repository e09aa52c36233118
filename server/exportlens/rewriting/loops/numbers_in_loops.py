"""Numbers from data that a loop reads and does not change: a tensor holds them, as while_loop takes in no such number.

n = t.item()                        n = t.item()
while x.sum() < 9:                  n_held = torch.full((), n)
    x = x + n            ->         while x.sum() < 9:
                                        n_2 = n_held.item()
                                        x = x + n_2
"""

from __future__ import annotations

import ast
from typing import TypeVar

from exportlens.rewriting.code.names import bound, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_DTYPES = {"int": "int64", "float": "float64", "bool": "bool"}
_Loop = TypeVar("_Loop", ast.While, ast.While | ast.For)


def held_for_loop(source: Source, loop: _Loop, kinds: Kinds, torch: str) -> tuple[Source, _Loop] | None:
    """The text where tensors hold the numbers from data that `loop` reads, and the loop of it; None where it reads none.
    `kinds`, those before the loop, get to know the tensors."""
    if not source.begins_line(loop) or not source.begins_line(loop.body[0]):
        return None
    anew = set(bound(loop))
    names = [each for one in loop.body for each in walk(one) if isinstance(each, ast.Name)]
    uses: list[ast.Name] = [
        each for each in names if each.id not in anew and _is_number(source, loop, each.id, kinds)
    ]
    asked = list(walk(loop.test)) if isinstance(loop, ast.While) else []
    tested: list[ast.Name] = [
        each
        for each in asked
        if isinstance(each, ast.Name)
        and each.id not in anew
        and (_is_number(source, loop, each.id, kinds) or _is_compared(source, each, names, kinds))
    ]
    if not uses and not tested:
        return None
    taken = every_name(source.tree)
    begin, first = source.start(loop), source.start(loop.body[0])
    swaps, head, rounds = [], "", ""
    for name in dict.fromkeys(each.id for each in [*uses, *tested]):
        held, type_ = fresh(f"{name}_held", taken), kinds.names[name].type or "float"
        double = f", dtype={torch}.float64" if type_ == "float" else ""
        head += f"{held} = {torch}.full((), {name}{double}){source.newline}{source.indent_of(loop)}"
        if any(each.id == name for each in uses):
            again = fresh(name, taken)
            rounds += f"{again} = {held}.item(){source.newline}{source.indent_of(loop.body[0])}"
            swaps += [source.swap(each, again) for each in uses if each.id == name]
        swaps += [source.swap(each, f"{held}.item()") for each in tested if each.id == name]
        kinds.assign(ast.Name(held, ast.Store()), Kind("tensor", _DTYPES[type_], 0))
    swaps += [Replacement(begin, begin, head), Replacement(first, first, rounds)]
    changed = Source(replaced(source.text, swaps))
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == begin + len(head))


def _is_compared(source: Source, name: ast.Name, body: list[ast.Name], kinds: Kinds) -> bool:
    """Whether it is a number from data of an unknown type that is only compared: a float of double precision does what an int does."""
    kind = kinds.names.get(name.id)
    unknown = kind is not None and kind.what == "scalar" and not kind.type
    read = any(each.id == name.id for each in body)
    return unknown and not read and isinstance(source.parents[name], ast.Compare)


def _is_number(source: Source, loop: ast.While | ast.For, name: str, kinds: Kinds) -> bool:
    """Whether `name` is a number from data before `loop`, in its first round or in a later one of a loop around it."""
    kind = kinds.names.get(name)
    if kind is None or kind.type not in _DTYPES:
        return False
    return kind.what == "scalar" or (
        kind.what == "number"
        and any(
            isinstance(each, (ast.Assign, ast.AugAssign))
            and bound(each) == [name]
            and kinds.of(each.value).what == "scalar"
            and kinds.of(each.value).type == kind.type
            for outer in source.ancestors(loop)
            if isinstance(outer, ast.For)
            for each in walk(outer)
        )
    )
