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
import operator
from collections.abc import Callable, Sequence
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
from exportlens.rewriting.code.names import assigned_pairs, bound, dotted, every_name, fresh, is_none, reads
from exportlens.rewriting.code.ranges import bounds_of
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.first_rounds import holds
from exportlens.rewriting.loops.none_at_first import none_at_first
from exportlens.rewriting.loops.rounds import has_rounds
from exportlens.rewriting.memory.effects import kinds_before, repeatable
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

Loop = ast.For | ast.While
_MOST_COPIED = 40
# torch.cond(condition, one arm, the other one, operands)
_CONDITION_AND_ARMS = 4
# What a name that is no constant is known to be: not None, an int above zero, or what a caller gives, or None.
_SET, _POSITIVE, _GIVEN = object(), object(), object()
_NEVER_NONE = frozenset({"tensor", "number", "scalar", "size", "container"})
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
_JOINED = {ast.And: " and ", ast.Or: " or "}
Facts = dict[str, Any]
_BEGUN = "  # torch.cond gives a tensor, also where there is none yet"


@dataclass(frozen=True)
class SettledFirst:
    """The text with the first round of a loop before it, the loop of that, the kinds inside of it, and how many statements are the
    first round, where that may break off; else 0."""

    source: Source
    loop: Loop
    kinds: Kinds
    breaking: int


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
        first = _Round(source, self.before, facts, True)
        text = first.block(loop.body, indent)
        later = self._later(first.facts)
        if later is None:
            return None
        rest = _Round(source, self.before, later, False)
        body = rest.block(loop.body, indent + source.indent_unit())
        written = _parsed(text, indent)
        ways = exits(written) - {"falls"}
        is_unlike = (first.folded and rest.folded) or self.left_out
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
            return ([], header) if holds(loop.test, self.before) else None
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
        facts |= dict.fromkeys(self.left_out, _GIVEN)
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
                    found[name] = _POSITIVE
                continue
            given = [self._given(each) for each in stores]
            if (value is None or value is _GIVEN) and stores:
                if ended.get(name) is not _SET or any(each is None for each in given):
                    # It is asked for again.
                    if value is _GIVEN or self._is_asked(name):
                        return None
                    continue
                found[name] = _SET
                self.given.update((name, each) for each in given[:1] if each is not None)
            elif not stores:
                found[name] = value
            elif all(
                isinstance(each, ast.Constant) and each.value is ended.get(name, _SET) for each in given
            ):
                found[name] = ended[name]
            elif type(value) is int and value >= 0 and type(ended.get(name)) is int and ended[name] > 0:
                counting = all(_adds(self.source.enclosing_statement(each)) for each in stores)
                found |= {name: _POSITIVE} if counting else {}
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


class _Round:
    """Writes the statements of one round, in which `facts` hold when it begins."""

    def __init__(self, source: Source, kinds: Kinds, facts: Facts, is_first: bool) -> None:
        self.source, self.kinds, self.facts, self.is_first = source, kinds, dict(facts), is_first
        # Each test that was answered.
        self.folded = 0

    def block(self, statements: Sequence[ast.stmt], indent: str) -> str:
        lines, _ = self._lines(statements, indent, True)
        return self.source.newline.join(lines) if lines else f"{indent}pass"

    def _lines(self, statements: Sequence[ast.stmt], indent: str, outermost: bool) -> tuple[list[str], bool]:
        """The lines, and whether the first round ends with them."""
        lines: list[str] = []
        for each in statements:
            if isinstance(each, ast.Continue) and self.is_first and outermost:
                return lines, True
            if isinstance(each, ast.If):
                own, ended = self._branch(each, indent, outermost)
                lines += own
                if ended:
                    return lines, True
                continue
            swaps = self._swaps(each) if not isinstance(each, (ast.For, ast.While, ast.Try, ast.With)) else []
            lines.append(self.source.block([each], indent, swaps))
            self._see(each)
        return lines, False

    def _branch(self, node: ast.If, indent: str, outermost: bool) -> tuple[list[str], bool]:
        source = self.source
        answer = self._answer(node.test)
        above = [
            indent + each for each in source.comments_between(source.span([node])[0], source.start(node))
        ]
        if answer is not None:
            self.folded += 1
            lines, ended = self._lines(node.body if answer else node.orelse, indent, outermost)
            return [*(above if lines else []), *lines], ended
        before, folded = dict(self.facts), self.folded
        inner = indent + source.indent_unit()
        swaps = self._swaps(node.test)
        body, _ = self._lines(node.body, inner, False)
        ends = [self.facts] if "falls" in exits(node.body) else []
        self.facts = dict(before)
        orelse, _ = self._lines(node.orelse, inner, False)
        ends += [self.facts] if "falls" in exits(node.orelse) else []
        self.facts = _common(ends) if ends else {}
        if self.folded == folded:
            return [source.block([node], indent)], False
        notes = source.comments_between(source.end(node.test), source.span(node.body)[0])
        lines = [*above, f"{indent}if {source.of(node.test, swaps)}:", *(inner + each for each in notes)]
        lines += body or [f"{inner}pass"]
        if orelse:
            lines += [f"{indent}else:", *orelse]
        return lines, False

    def _see(self, node: ast.stmt) -> None:
        """Follow what `node` binds."""
        if not self.is_first:
            # Each fact holds in all of these rounds.
            return
        facts = {name: value for name, value in self.facts.items() if name not in bound(node)}
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target, value in assigned_pairs(node):
                if isinstance(target, ast.Name) and target.id in self.facts:
                    facts[target.id] = value.value if isinstance(value, ast.Constant) else _SET
        elif isinstance(node, ast.AugAssign) and _adds(node) and isinstance(node.target, ast.Name):
            begun = self.facts.get(node.target.id)
            more = node.value.value if isinstance(node.value, ast.Constant) else None
            if type(begun) is int and isinstance(more, int):
                facts[node.target.id] = begun + more
        self.facts = facts

    def _swaps(self, node: ast.AST) -> list[Replacement]:
        """The changes to the questions in `node`."""
        if isinstance(node, ast.IfExp):
            answer = self._answer(node.test)
            if answer is not None:
                self.folded += 1
                chosen = node.body if answer else node.orelse
                return [self.source.swap(node, self.source.of(chosen, self._swaps(chosen)))]
        chosen_arm = self._chosen_arm(node)
        if chosen_arm is not None:
            self.folded += 1
            return [self.source.swap(node, chosen_arm)]
        if isinstance(node, ast.BoolOp):
            same = isinstance(node.op, ast.And)
            left = [each for each in node.values if self._answer(each) is not same]
            if 0 < len(left) < len(node.values) and self._answer(node) is None:
                self.folded += 1
                texts = [self._operand(each, len(left) > 1) for each in left]
                return [self.source.swap(node, _JOINED[type(node.op)].join(texts))]
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return []
        return [swap for each in ast.iter_child_nodes(node) for swap in self._swaps(each)]

    def _chosen_arm(self, node: ast.AST) -> str | None:
        """The call of the one arm of a torch.cond that was made before, where its question is answered."""
        if not isinstance(node, ast.Call) or not (dotted(node.func) or "").endswith(".cond") or node.keywords:
            return None
        if (
            len(node.args) != _CONDITION_AND_ARMS
            or not isinstance(node.args[-1], ast.Tuple)
            or node.args[-1].elts
        ):
            return None
        answer = self._answer(node.args[0])
        arm = node.args[1 if answer else 2]
        return None if answer is None or not isinstance(arm, ast.Name) else f"{arm.id}()"

    def _operand(self, node: ast.expr, grouped: bool) -> str:
        text = self.source.of(node, self._swaps(node))
        loose = isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr))
        return f"({text})" if grouped and loose else text

    def _answer(self, test: ast.expr) -> bool | None:
        """What `test` comes out as; None where that is not known."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._answer(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            deciding = isinstance(test.op, ast.Or)
            answers = [self._answer(each) for each in test.values]
            if deciding in answers:
                before = test.values[: answers.index(deciding)]
                return deciding if all(repeatable(each, self.kinds) for each in before) else None
            return None if None in answers else not deciding
        if isinstance(test, ast.Name):
            known = self.facts.get(test.id, _SET)
            return None if known is _SET or known is _GIVEN else known is _POSITIVE or bool(known)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
            return None
        return self._compared(test.left.id, test.ops[0], test.comparators[0])

    def _compared(self, name: str, op: ast.cmpop, other: ast.expr) -> bool | None:
        if name not in self.facts or not isinstance(other, ast.Constant):
            return None
        known = self.facts[name]
        if known is _GIVEN:
            return None
        if isinstance(op, (ast.Is, ast.IsNot)):
            if other.value is None:
                return (known is None) is isinstance(op, ast.Is)
            return None
        compare = _COMPARED.get(type(op))
        if compare is None or type(other.value) is not int or known is None or known is _SET:
            return None
        if known is not _POSITIVE:
            return compare(known, other.value)
        if other.value == 0:
            return compare(1, 0)
        # Of any int from 1 on.
        at_one = {ast.GtE: True, ast.Lt: False}
        return at_one.get(type(op)) if other.value == 1 else None


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


def _common(ends: list[Facts]) -> Facts:
    return {
        name: value
        for name, value in ends[0].items()
        if all(each.get(name, _POSITIVE) is value for each in ends)
    }


def _adds(node: ast.stmt) -> bool:
    """Whether `node` counts up."""
    return (
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
        and node.value.value > 0
    )


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _parsed(text: str, indent: str) -> list[ast.stmt]:
    lines = text.splitlines()
    return parse_python("\n".join(each.removeprefix(indent) for each in lines)).body
