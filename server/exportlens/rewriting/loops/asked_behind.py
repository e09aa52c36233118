"""What follows a loop for whether, or where, it was left, written where the loop is left and in its `else`.

    found = False                      for i in range(1, n):
    for i in range(1, n):                  y = x * i
        y = x * i                          if y.mean() > 1:
        if y.mean() > 1:                       out = y.relu()
            found = True         ->            break
            break                      else:
    if found:                              out = x
        out = y.relu()
    else:
        out = x

What a round binds is then read in that round alone, so that nothing asks what it is where there was no round.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from exportlens.inference.operators import COMPARE
from exportlens.rewriting.code.liveness import Liveness, exits
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.ranges import bounds_of, written_int
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

Loop = ast.For | ast.While
# What follows a loop is traced in each of its rounds where it stands in front of the `break`.
_MOST_MOVED = 6
# As high as no counter comes.
_HIGH = 1 << 62
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    **COMPARE,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


@dataclass(frozen=True, slots=True)
class _Question:
    """The name that is asked, the answer for a value of it, and the int at which that may change."""

    name: str
    ask: Callable[[Any], bool]
    edge: int | None


def asked_in_the_loop(source: Source, loop: Loop) -> tuple[Source, Loop] | None:
    """The text where the branch behind `loop` on a flag or an index that only a `break` sets has its ways in the loop, and the
    loop; None where there is no such branch."""
    function = source.enclosing_function(loop)
    block, index = source.block_of(loop)
    asked = block[index + 1] if index + 1 < len(block) else None
    if function is None or loop.orelse or not isinstance(asked, ast.If) or not isinstance(loop, ast.For):
        return None
    breaks = [each for each in _breaks(loop.body) if isinstance(each, ast.Break)]
    if (
        not breaks
        # Another stands in another statement than a branch.
        or len(breaks) != sum(_leaves(source, each, loop) for each in walk(loop))
        or exits([asked]) & {"breaks", "continues"}
        or source.text.startswith("elif", source.start(asked))
    ):
        return None
    if not all(map(source.begins_line, (loop, asked, *breaks))):
        return None
    question = _question(asked.test)
    if question is None:
        return None
    name = question.name
    start = next((each for each in reversed(block[:index]) if name in bound(each)), None)
    if not isinstance(start, ast.Assign) or [ast.unparse(each) for each in start.targets] != [name]:
        return None
    first = _constant(start.value)
    setting = [_set_before(source, each, name) for each in breaks]
    if first is None or None in setting or name in reads(loop) | set(bound(loop.target)):
        return None
    stores = [each for each in walk(loop) if isinstance(each, ast.Name) and each.id == name]
    if len(stores) != len(setting):
        return None
    try:
        begun = question.ask(first[0])
        answers = {each for one in setting if one is not None for each in _answers(loop, one.value, question)}
    except TypeError:
        return None
    if answers != {not begun}:
        return None
    left, unleft = (asked.orelse, asked.body) if begun else (asked.body, asked.orelse)
    moved = sum(isinstance(each, ast.stmt) for one in left for each in walk(one))
    if moved > _MOST_MOVED or (moved and len(breaks) > 1):
        return None
    around = [*block[block.index(start) + 1 : index], *left, *unleft]
    needed = name in Liveness(function).live_after(asked) or name in reads(around)
    indent, nl, begin = source.indent_of(loop), source.newline, source.start(loop)
    swaps = [] if needed else [source.without(each) for each in (start, *filter(None, setting))]
    for node in breaks if left else ():
        deeper = source.indent_of(node)
        text = _with_notes(source, asked, left, deeper).removeprefix(deeper)
        stop = source.of(node) if "falls" in exits(left) else ""
        swaps.append(source.swap(node, f"{text}{nl}{deeper}{stop}" if stop else text))
    body = ""
    if unleft:
        body = f"{nl}{indent}else:{nl}{_with_notes(source, asked, unleft, indent + source.indent_unit())}"
    swaps.append(Replacement(source.span([loop])[1], source.span([asked])[1], body))
    if None in swaps:
        return None
    made = [each for each in swaps if each is not None]
    changed = Source(replaced(source.text, made))
    begin -= sum(each.end - each.start - len(each.text) for each in made if each.end <= begin)
    return _same(changed, loop, begin)


def returned_behind(source: Source, loop: Loop, kinds: Kinds) -> tuple[Source, Loop] | None:
    """The text where what `loop` returns, and what is returned right behind it, is a name's value that is returned there, and
    the loop; None where something else may come of it. `kinds` are those inside of the loop."""
    function = source.enclosing_function(loop)
    block, index = source.block_of(loop)
    behind = block[index + 1] if index + 1 < len(block) else None
    if function is None or loop.orelse or "breaks" in exits(loop.body) or not isinstance(loop, ast.For):
        return None
    if not isinstance(behind, ast.Return) or behind.value is None:
        return None
    left = [each for each in _breaks(loop.body) if isinstance(each, ast.Return)]
    inside = [each for each in walk(loop) if isinstance(each, ast.Return)]
    if not left or len(left) != len(inside) or not all(map(source.begins_line, (loop, behind, *left))):
        return None
    parts = [_parts(each) for each in (*left, behind)]
    for each, given in zip((*left, behind), parts, strict=True):
        now = kinds_before(function, each, kinds)
        if len(given) != len(parts[0]) or any(now.of(one).what != "tensor" for one in given):
            return None
    taken = every_name(source.tree)
    names = ", ".join(fresh("result", taken) for _ in parts[0])
    indent, nl = source.indent_of(loop), source.newline
    inner = indent + source.indent_unit()
    swaps = []
    for each in left:
        assert each.value is not None
        text = f"{names} = {source.of(each.value)}{nl}{source.indent_of(each)}break"
        swaps.append(Replacement(source.start(each), source.end(each), text))
    notes = [
        f"{inner}{each}{nl}"
        for each in source.comments_between(source.span([behind])[0], source.start(behind))
    ]
    last = f"{inner}{names} = {source.of(behind.value)}{nl}{indent}return {names}"
    swaps.append(
        Replacement(
            source.span([loop])[1], source.end(behind), f"{nl}{indent}else:{nl}{''.join(notes)}{last}"
        )
    )
    changed = Source(replaced(source.text, swaps))
    return _same(changed, loop, source.start(loop))


def _parts(node: ast.Return) -> list[ast.expr]:
    """What `node` returns, one by one where it is a tuple."""
    if isinstance(node.value, ast.Tuple):
        return node.value.elts
    return [] if node.value is None else [node.value]


def _same(changed: Source, loop: Loop, begin: int) -> tuple[Source, Loop]:
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == begin)


def _breaks(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """What leaves the loop whose body `statements` belong to, as far as only branches stand around it."""
    for each in statements:
        if isinstance(each, (ast.Break, ast.Return)):
            yield each
        elif isinstance(each, ast.If):
            yield from _breaks(each.body)
            yield from _breaks(each.orelse)


def _leaves(source: Source, node: ast.AST, loop: Loop) -> bool:
    """Whether `node` is a `break` of `loop`, not of one inside of it."""
    if not isinstance(node, ast.Break):
        return False
    return next(each for each in source.ancestors(node) if isinstance(each, (ast.For, ast.While))) is loop


def _with_notes(source: Source, asked: ast.If, way: list[ast.stmt], indent: str) -> str:
    """The lines of one way of `asked` at `indent`, with the comments in front of it."""
    block, index = source.block_of(asked)
    begin = source.span([block[index - 1]])[1] if way is asked.body else source.span(asked.body)[1]
    notes = [indent + each for each in source.comments_between(begin, source.span(way)[0])]
    return source.newline.join([*notes, source.block(way, indent)])


def _set_before(source: Source, node: ast.stmt, name: str) -> ast.Assign | None:
    """The assignment of `name` in front of `node`, in the same block."""
    block, index = source.block_of(node)
    for each in reversed(block[:index]):
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [name]:
            return each
    return None


def _question(test: ast.expr) -> _Question | None:
    """What `test` asks of a name; None where it asks more, or another value than a number, a truth or None."""
    if isinstance(test, ast.Name):
        return _Question(test.id, bool, 0)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _question(test.operand)
        if inner is None:
            return None
        ask = inner.ask
        return _Question(inner.name, lambda value: not ask(value), inner.edge)
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)):
        return None
    compared, other = _COMPARED.get(type(test.ops[0])), _constant(test.comparators[0])
    if compared is None or other is None:
        return None
    edge = other[0]
    if isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        # The same int need not be the same object.
        return (
            None if type(edge) is int else _Question(test.left.id, lambda value: compared(value, edge), None)
        )
    return _Question(test.left.id, lambda value: compared(value, edge), edge if type(edge) is int else None)


def _constant(node: ast.expr) -> tuple[bool | int | None] | None:
    """The truth, None or the int that `node` is, written out."""
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool)):
        return (node.value,)
    value = written_int(node)
    return None if value is None else (value,)


def _answers(loop: ast.For, value: ast.expr, question: _Question) -> set[bool]:
    """The answers for what the loop binds the name to: a constant, or its counter."""
    known = _constant(value)
    if known is not None:
        return {question.ask(known[0])}
    lowest = _lowest(loop, value)
    if lowest is None:
        return {True, False}
    # The answer changes at the edge, if anywhere.
    edge = lowest if question.edge is None else question.edge
    return {question.ask(each) for each in (lowest, edge - 1, edge, edge + 1, _HIGH) if each >= lowest}


def _lowest(loop: ast.For, value: ast.expr) -> int | None:
    """The least that `value` is, as the counter of `loop` which counts up; None where it is none."""
    called = loop.iter
    if not isinstance(value, ast.Name) or not isinstance(called, ast.Call) or value.id in bound(loop.body):
        return None
    bounds = bounds_of(called) if dotted(called.func) == "range" else None
    if bounds is not None and isinstance(loop.target, ast.Name) and loop.target.id == value.id:
        return bounds[0] if bounds[2] > 0 else None
    if dotted(called.func) != "enumerate" or len(called.args) != 1 or called.keywords:
        return None
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    return 0 if isinstance(first, ast.Name) and first.id == value.id else None
