"""A loop whose first round is unlike the others, as it finds None, a first flag or a counter of 0, or as its caller may have
given None: that round is written out before the loop, and neither asks for it any more.

    last = None                                cost = f(x)
    for _ in range(20):                        last = cost
        cost = f(x)                            for _ in range(1, 20):
        if last is not None and t(last):  ->       cost = f(x)
            break                                  if t(last):
        last = cost                                    break
                                                   last = cost

torch.cond and while_loop carry no None: what a name begins with is then what the first round gives it. Only a loop that certainly
has a first round is written so.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from exportlens.rewriting.code.liveness import (
    Liveness,
    always_bound,
    certainly_bound_before,
    exits,
    leaves,
    live_before,
)
from exportlens.rewriting.code.names import assigned_pairs, bound, every_name, fresh, is_none, reads
from exportlens.rewriting.code.ranges import bounds_of
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.first_rounds import holds, is_read_behind, left_unbound, what
from exportlens.rewriting.loops.known_rounds import GIVEN, POSITIVE, SET, Facts, KnownRound, adds
from exportlens.rewriting.loops.none_at_first import none_at_first
from exportlens.rewriting.loops.rounds import has_rounds
from exportlens.rewriting.memory.effects import kinds_before, repeatable
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

Loop = ast.For | ast.While
_MOST_COPIED = 40
_NEVER_NONE = frozenset({"tensor", "number", "scalar", "size", "container"})
_BEGUN = "  # torch.cond gives a tensor, also where there is none yet"


@dataclass(frozen=True)
class SettledFirst:
    """The text with the first round of a loop before it, the loop of that, the kinds inside of it, and how many statements are the
    first round, where that may break off; else 0."""

    source: Source
    loop: Loop
    kinds: Kinds
    breaking: int

    def kinds_before(self) -> Kinds:
        """The kinds just before the loop over the other rounds."""
        function = self.source.enclosing_function(self.loop)
        return self.kinds if function is None else kinds_before(function, self.loop, self.kinds)


def first_round_settled(source: Source, loop: Loop, kinds: Kinds, torch: str) -> SettledFirst | None:
    """None where the rounds ask for nothing that tells the first one."""
    function = source.enclosing_function(loop)
    size = sum(isinstance(each, ast.stmt) for one in loop.body for each in ast.walk(one))
    if function is None or not source.begins_line(loop) or size > _MOST_COPIED:
        return None
    return _Settled(source, loop, function, kinds, torch).result()


class _Settled:
    def __init__(self, source: Source, loop: Loop, function: Function, kinds: Kinds, torch: str) -> None:
        self.source, self.loop, self.function, self.kinds, self.torch = source, loop, function, kinds, torch
        self.before = kinds_before(function, loop, kinds)
        self.given: dict[str, ast.expr] = {}
        self.left_out = none_at_first(source, loop, kinds)

    def result(self) -> SettledFirst | None:
        source, loop = self.source, self.loop
        start = self._header()
        if start is None:
            return None
        lines, header = start
        facts = self._begun()
        indent = source.indent_of(loop)
        first = KnownRound(source, self.before, facts, True)
        text = first.block(loop.body, indent)
        later = self._later(first.facts)
        if later is None:
            return None
        rest = KnownRound(source, self.before, later, False)
        body = rest.block(loop.body, indent + source.indent_unit())
        written = _parsed(text, indent)
        ways = exits(written) - {"falls"}
        is_unlike = (first.folded and (rest.folded or self._begins(written))) or self.left_out
        if not is_unlike or leaves(written) or not ways <= {"breaks"}:
            return None
        begun = self._begun_where_left(written) if ways else []
        if begun is None:
            return None
        text = self._with_lines(text, written, begun, indent)
        nl, begin = source.newline, source.start(loop)
        head = nl.join([*(line if not n else indent + line for n, line in enumerate(lines)), ""]) + (
            indent if lines else ""
        )
        head += text.removeprefix(indent) + nl + indent
        swaps = [
            Replacement(begin, begin, head),
            Replacement(begin, source.span(loop.body)[1], f"{header}{nl}{body}"),
        ]
        changed = Source(replaced(source.text, swaps))
        same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
        kinds = self.kinds.copy()
        for name, value in self.given.items():
            kinds.assign(ast.Name(name, ast.Store()), self._of(value))
        found = next(each for each in same if changed.start(each) == begin + len(head))
        return SettledFirst(changed, found, kinds, len(written) + len(begun) if ways else 0)

    # --- the first round --------------------------------------------------------------------------------------

    def _header(self) -> tuple[list[str], str] | None:
        """The lines in front of the first round, and the first line of the loop over the others; None where it may have none."""
        source, loop = self.source, self.loop
        if isinstance(loop, ast.While):
            header = source.between(source.start(loop), self._header_end())
            # Without a first round Python raises where it reads what no round has bound.
            runs = holds(loop.test, self.before) or any(
                is_read_behind(source, loop, name) for name in left_unbound(source, loop)
            )
            return ([], header) if runs else None
        target = source.of(loop.target)
        bounds = bounds_of(loop.iter)
        if bounds is not None and _is_range(loop.iter) and bounds[2] == 1:
            if not has_rounds(loop.iter, self.before) or not isinstance(loop.target, ast.Name):
                return None
            lines = [f"{target} = {bounds[0]}"] if self._is_read(loop.target.id) else []
            return lines, f"for {target} in range({bounds[0] + 1}, {source.of(bounds[1])}):"
        if not has_rounds(loop.iter, self.before):
            return None
        rounds = fresh("rounds", every_name(source.tree))
        lines = [f"{rounds} = list({source.of(loop.iter)})", f"{target} = {rounds}[0]"]
        return lines, f"for {target} in {rounds}[1:]:"

    def _begins(self, written: list[ast.stmt]) -> bool:
        """Whether the first round binds all that the loop alone binds and that is read behind it, or makes a tensor of the number by
        which the loop goes on."""
        unbound = left_unbound(self.source, self.loop)
        if not unbound <= always_bound(written):
            return False
        after = self.before.copy()
        after.run(written)
        goes_on = reads(self.loop.test) if isinstance(self.loop, ast.While) else set()
        return bool(unbound) or any(
            what(self.before, name) == "number" and what(after, name) == "tensor"
            for name in goes_on & set(bound(self.loop.body))
        )

    def _begun_where_left(self, written: list[ast.stmt]) -> list[str] | None:
        """The lines for what the first round binds behind its break and later rounds read: torch.cond gives a tensor, also where
        nothing reads it any more. None where a name can begin with nothing."""
        at = _leaving(written)
        there = always_bound(written[:at])
        certain = (certainly_bound_before(self.function, self.loop) - set(self.given)) | there
        carried = live_before(self.loop.body, frozenset(), self.function)
        after = Liveness(self.function).live_after(self.loop)
        lines = []
        for name in bound(written[at:]):
            if name in certain or not (name in carried or name in after):
                continue
            value = next((each for each in map(self._given, self._stores(name)) if each is not None), None)
            if value is None or name in after or self._of(value).what != "tensor":
                return None
            known = certain | set(self.kinds.modules)
            like = next((each for each in _same_as(value, written) if reads(each) <= known), None)
            if like is None or not repeatable(like, self.before):
                return None
            lines.append(f"{name} = {self.torch}.zeros_like({ast.unparse(like)}){_BEGUN}")
        return lines

    def _with_lines(self, text: str, written: list[ast.stmt], begun: list[str], indent: str) -> str:
        if not begun:
            return text
        lines = text.split(self.source.newline)
        at = written[_leaving(written)].lineno - 1
        return self.source.newline.join([*lines[:at], *(indent + each for each in begun), *lines[at:]])

    def _header_end(self) -> int:
        assert isinstance(self.loop, ast.While)
        return self.source.text.index(":", self.source.end(self.loop.test)) + 1

    def _is_read(self, name: str) -> bool:
        return any(
            isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
            for each in walk(self.function)
        )

    def _begun(self) -> Facts:
        """The constants that names hold when the loop begins."""
        block, index = self.source.block_of(self.loop)
        facts: Facts = {}
        for each in block[:index]:
            facts = {name: value for name, value in facts.items() if name not in bound(each)}
            if isinstance(each, (ast.Assign, ast.AnnAssign)):
                facts |= {
                    target.id: value.value
                    for target, value in assigned_pairs(each)
                    if isinstance(target, ast.Name)
                    and isinstance(value, ast.Constant)
                    and type(value.value) in (int, bool, type(None))
                }
        if isinstance(self.loop, ast.For):
            bounds = bounds_of(self.loop.iter) if _is_range(self.loop.iter) else None
            facts = {name: value for name, value in facts.items() if name not in bound(self.loop.target)}
            if bounds is not None and isinstance(self.loop.target, ast.Name):
                facts[self.loop.target.id] = bounds[0]
        facts |= dict.fromkeys(self.left_out, GIVEN)
        nested = {
            name
            for each in walk(self.function)
            if isinstance(each, (ast.FunctionDef, ast.Lambda, ast.Global, ast.Nonlocal))
            and each is not self.function
            for name in (*bound(each), *reads(each))
        }
        return {name: value for name, value in facts.items() if name not in nested}

    def _later(self, ended: Facts) -> Facts | None:
        """What holds in every later round, after a first one that `ended` so; None where a name may be None there."""
        found: Facts = {}
        begun = self._begun()
        for name, value in begun.items():
            stores = self._stores(name)
            if isinstance(self.loop, ast.For) and name in bound(self.loop.target):
                if not stores and type(value) is int and value >= 0:
                    found[name] = POSITIVE
                continue
            given = [self._given(each) for each in stores]
            if (value is None or value is GIVEN) and stores:
                if ended.get(name) is not SET or any(each is None for each in given):
                    # It is asked for again.
                    if value is GIVEN or self._is_asked(name):
                        return None
                    continue
                found[name] = SET
                self.given.update((name, each) for each in given[:1] if each is not None)
            elif not stores:
                found[name] = value
            elif all(isinstance(each, ast.Constant) and each.value is ended.get(name, SET) for each in given):
                found[name] = ended[name]
            elif type(value) is int and value >= 0 and type(ended.get(name)) is int and ended[name] > 0:
                counting = all(adds(self.source.enclosing_statement(each)) for each in stores)
                found |= {name: POSITIVE} if counting else {}
        return found

    def _stores(self, name: str) -> list[ast.Name]:
        return [
            each
            for each in walk(self.loop)
            if isinstance(each, ast.Name)
            and each.id == name
            and not isinstance(each.ctx, ast.Load)
            and not (isinstance(self.loop, ast.For) and any(each is one for one in walk(self.loop.target)))
        ]

    def _given(self, target: ast.Name) -> ast.expr | None:
        """What is stored at `target`, if that certainly is not None."""
        statement = self.source.enclosing_statement(target)
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return None
        value = next((value for one, value in assigned_pairs(statement) if one is target), None)
        if value is None or is_none(value):
            return None
        return value if isinstance(value, ast.Constant) or self._of(value).what in _NEVER_NONE else None

    def _of(self, value: ast.expr) -> Any:
        return kinds_before(self.function, self.source.enclosing_statement(value), self.kinds).of(value)

    def _is_asked(self, name: str) -> bool:
        return any(
            isinstance(each, ast.Compare)
            and isinstance(each.left, ast.Name)
            and each.left.id == name
            and is_none(each.comparators[0])
            for each in walk(self.loop)
        )


def _leaving(statements: list[ast.stmt]) -> int:
    """Which is the first of `statements` that may leave the round."""
    return next((n for n, each in enumerate(statements) if exits([each]) != {"falls"}), len(statements))


def _same_as(value: ast.expr, statements: list[ast.stmt]) -> list[ast.expr]:
    """`value`, and what the one of `statements` that binds it as a name binds it to."""
    given = [
        one
        for each in statements
        if isinstance(each, ast.Assign) and isinstance(value, ast.Name)
        for target, one in assigned_pairs(each)
        if isinstance(target, ast.Name) and target.id == value.id
    ]
    return [value, *given] if len(given) == 1 else [value]


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _parsed(text: str, indent: str) -> list[ast.stmt]:
    lines = text.splitlines()
    return parse_python("\n".join(each.removeprefix(indent) for each in lines)).body
