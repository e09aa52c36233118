"""Loops that tensor data leaves early: `break` and `return` become a flag, and what follows becomes branches on it.

    for _ in range(n):            stopped = torch.zeros((), dtype=torch.bool)
        y = step(x)               for _ in range(n):
        if close(x, y):               if not stopped:
            break                         y = step(x)
        x = y                             stopped = close(x, y)
                                          if not stopped:
                                              x = y

The branches on the flag hang on tensor data like any other, and are rewritten as such.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import (
    Liveness,
    always_bound,
    certainly_bound_before,
    exits,
    live_before,
)
from exportlens.rewriting.code.names import bound, every_name, fresh, reads
from exportlens.rewriting.code.ranges import bounds_of
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.conditions import scalar_bool
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.changing_sizes import grows
from exportlens.rewriting.loops.first_rounds import holds
from exportlens.rewriting.loops.idle_rest import may_run_idly
from exportlens.rewriting.loops.raised_in_loops import errors_of
from exportlens.rewriting.loops.rounds import has_rounds
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.parsing import parse_python

_LEAVING = (ast.Break, ast.Return, ast.Raise)
Loop = ast.For | ast.While
# More than this of a loop's body is not written out a second time.
_MOST_COPIED = 40


@dataclass(frozen=True, slots=True)
class Flagged:
    """The text with the flag; its loop, and the statements before and after that belong to the rewrite, begin at
    statement `first` of the block that `path` leads to."""

    text: str
    path: tuple[tuple[str, int], ...]
    first: int
    count: int

    def statements(self, tree: ast.AST, more: int) -> list[ast.stmt]:
        """The statements of the rewrite in a later text, in which they have become `more` statements more."""
        return self.block(tree)[self.first : self.first + self.count + more]

    def block(self, tree: ast.AST) -> list[ast.stmt]:
        """The block that holds them. Raises Refused where a rewrite has put other statements around it."""
        node = tree
        try:
            for field, index in self.path[:-1]:
                node = getattr(node, field)[index]
            block: list[ast.stmt] = getattr(node, self.path[-1][0])
        except (AttributeError, IndexError, TypeError):
            raise Refused(
                "the loop stands in a branch that is rewritten with it: mend that branch first"
            ) from None
        return block


def left_loop(source: Source, node: ast.stmt) -> Loop | None:
    """The loop that the `if` statement `node` may leave by `break` or `return`, or what follows it in the round where it
    continues; None where there is none."""
    if not isinstance(node, ast.If):
        return None
    ways = exits([node])
    statement: ast.AST = node
    for outer in source.ancestors(node):
        if "continues" in ways and isinstance(statement, ast.stmt):
            block, index = source.block_of(statement)
            ways = ways | (exits(block[index + 1 :]) & {"breaks", "returns"})
        inner, statement = statement, outer
        # The `else` of a loop leaves the loop around it.
        if isinstance(outer, (ast.For, ast.While)) and inner not in outer.orelse:
            return outer if ways & {"breaks", "returns"} else None
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return None
    return None


def flagged(
    source: Source, loop: Loop, kinds: Kinds, torch: str, runs: bool = False, first: Sequence[ast.stmt] = ()
) -> Flagged:
    """The whole text with a flag in the place of what leaves `loop`, which has a first round where it `runs`; `kinds` are those
    inside of it. `first` is a first round that stands before it and breaks off as others do. Raises Refused."""
    function = source.enclosing_function(loop)
    if function is None:
        raise Refused("the loop is not inside a function")
    return _Flags(source, loop, function, kinds, torch, runs, first).result()


class _Flags:
    def __init__(
        self,
        source: Source,
        loop: Loop,
        function: Function,
        kinds: Kinds,
        torch: str,
        runs: bool,
        first: Sequence[ast.stmt],
    ) -> None:
        self.source, self.loop, self.function, self.kinds, self.torch = source, loop, function, kinds, torch
        self.runs, self.first = runs, first
        self.unit, self.nl = source.indent_unit(), source.newline
        ways = exits(loop.body)
        messages = errors_of(source, loop, function, kinds) if "raises" in ways else {}
        if exits(loop.orelse) - {"falls", "returns"} and exits(loop.orelse) != {"raises"}:
            raise Refused("the loop's `else` leaves a loop around it, or raises on some of its ways")
        inner = (
            each for each in ast.walk(loop) if isinstance(each, (ast.For, ast.While)) and each is not loop
        )
        if any(exits(each.orelse) & {"breaks", "continues"} for each in inner):
            raise Refused("the `else` of an inner loop leaves the loop around it")
        texts = self._returned() if "returns" in ways else []
        taken = every_name(source.tree)
        # One flag ends the loop; where it is left in several ways, each return has one of its own beside it.
        several = (
            len(ways & {"breaks", "returns", "raises"}) > 1
            or len(texts) > 1
            or len(set(messages.values())) > 1
        )
        alone = "failed" if messages else "done" if texts else "stopped"
        self.flag = fresh("stopped" if several else alone, taken)
        self.returned = {text: fresh("done", taken) if several else self.flag for text in texts}
        names = {
            text: fresh("failed", taken) if several else self.flag
            for text in dict.fromkeys(messages.values())
        }
        self.checked = {flag: text for text, flag in names.items()}
        self.raised = {node: names[text] for node, text in messages.items()}
        self._refuse_read_targets()
        self._refuse_growing()

    def _refuse_growing(self) -> None:
        """What grows in each round has, behind a branch on the flag, a size that later branches cannot take in."""
        statements = [each for each in ast.walk(self.loop) if isinstance(each, ast.Assign)]
        for name in filter(None, map(grows, statements)):
            first = next((each for each in self.loop.body if name in bound(each)), None)
            # What each round makes anew does not grow from one to the next.
            if first is not None and name in reads(first):
                raise Refused(
                    f"`{name}` grows in each round until tensor data stops it: start with its largest size, and write each "
                    "round's part into it"
                )

    def _returned(self) -> list[str]:
        """The expressions that the loop's body returns, which have the same value when the loop is over."""
        found = [
            each
            for each in ast.walk(self.loop)
            if isinstance(each, ast.Return) and self.source.enclosing_function(each) is self.function
        ]
        certain = certainly_bound_before(self.function, self.loop)
        texts: dict[str, None] = {}
        for each in found:
            if each.value is None:
                raise Refused("the loop's body returns no value")
            outer = next(one for one in self.source.ancestors(each) if isinstance(one, (ast.For, ast.While)))
            if outer is not self.loop:
                raise Refused("an inner loop returns")
            unsure = sorted(name for name in reads(each.value) & set(bound(self.loop)) if name not in certain)
            if unsure and not self._runs():
                raise Refused(f"`{unsure[0]}`, which the loop returns, may be unbound after the loop")
            texts[self.source.of(each.value)] = None
        return list(texts)

    def _refuse_read_targets(self) -> None:
        """The rewritten loop runs to its end: what it counts or goes through is then not where it was left."""
        if not isinstance(self.loop, ast.For):
            return
        needed = self._read_later()
        for name in bound(self.loop.target):
            if name in needed:
                raise Refused(f"`{name}` is read after the loop, and says where tensor data left it")

    def result(self, begun: Sequence[str] = ()) -> Flagged:
        """The text, in which `begun` begin before the loop."""
        source, loop = self.source, self.loop
        indent = source.indent_of(loop)
        if not source.begins_line(loop):
            raise Refused("the loop shares its line with another statement")
        peeled = self._unsure_names()
        if peeled:
            self._refuse_peeling(peeled)
        flags = dict.fromkeys([self.flag, *self.returned.values(), *self.checked])
        head = [f"{indent}{flag} = {self.torch}.zeros((), dtype={self.torch}.bool)" for flag in flags]
        head += [indent + each for each in begun]
        before = len(head)
        rounds, counted = "", self._counted()
        if self.first:
            head.append(self._block(self.first, indent))
            before += len(parse_python(_undented(head[-1], indent)).body)
        if peeled:
            if isinstance(loop, ast.For) and counted is None:
                # The first element is taken before the loop over the others.
                rounds = fresh("rounds", every_name(source.tree))
                head.append(f"{indent}{rounds} = list({source.of(loop.iter)})")
                head.append(f"{indent}{source.of(loop.target)} = {rounds}[0]")
                before += 2
            elif (
                isinstance(loop, ast.For)
                and isinstance(loop.target, ast.Name)
                and loop.target.id in reads(loop.body)
            ):
                head.append(f"{indent}{loop.target.id} = {counted[0] if counted is not None else 0}")
                before += 1
            head.append(self._block(loop.body, indent))
            before += len(parse_python(_undented(head[-1], indent)).body)
        inner = indent + self.unit
        if isinstance(loop, ast.For):
            header = source.between(source.start(loop), self._header_end())
            if rounds:
                header = f"for {source.of(loop.target)} in {rounds}[1:]:"
            elif peeled and counted is not None:
                header = f"for {source.of(loop.target)} in range({counted[0] + 1}, {source.of(counted[1])}):"
            lines = [
                f"{indent}{header}",
                *(inner + each for each in source.header_comments(loop)),
                f"{inner}if not {self.flag}:",
                self._block(loop.body, inner + self.unit),
            ]
        else:
            test = "" if _is_true(loop.test) else f" and {_grouped(source, loop.test)}"
            notes = [inner + each for each in source.header_comments(loop)]
            lines = [f"{indent}while not {self.flag}{test}:", *notes, self._block(loop.body, inner)]
        after = [
            f"{indent}{self.torch}._assert_async({self.torch}.logical_not({flag}), {text})"
            for flag, text in self.checked.items()
        ]
        behind = len(after)
        endless = isinstance(loop, ast.While) and _is_true(loop.test) and "breaks" not in exits(loop.body)
        for number, (value, flag) in enumerate(self.returned.items(), 1):
            if endless and number == len(self.returned):
                # Nothing else leaves it.
                after.append(f"{indent}return {value}")
                behind += 1
            elif len(self.returned) > 1 or not self._returned_next(value):
                after += [f"{indent}if {flag}:", f"{inner}return {value}"]
                behind += 1
        if loop.orelse:
            # What `else` holds runs where nothing has left the loop.
            after += [f"{indent}if not {self.flag}:", source.block(loop.orelse, inner)]
            behind += 1
        start, end = source.span([*self.first, loop])
        comments = source.comments_between(source.span([loop])[0], source.start(loop))
        above = [*(indent + each for each in comments), *head]
        text = self.nl.join([*above, *lines, *after])
        if not begun and not peeled and not self.first:
            missing = self._unbound_where_left(
                replaced(source.text, [Replacement(start, end, text)]), start, above
            )
            if missing:
                return self.result(missing)
        index = source.block_of(loop)[1] - len(self.first)
        return Flagged(
            replaced(source.text, [Replacement(start, end, text)]),
            _path(source, loop),
            index,
            before + 1 + behind,
        )

    def _unbound_where_left(self, text: str, start: int, above: list[str]) -> list[str]:
        """The lines that begin numbers which an arm with a way out binds: on the flag's other side they have no value."""
        changed = Source(text)
        place = start + len(self.nl.join(above)) + len(self.nl) + len(self.source.indent_of(self.loop))
        loops = (each for each in ast.walk(changed.tree) if isinstance(each, (ast.For, ast.While)))
        loop = next((each for each in loops if changed.start(each) == place), None)
        function = changed.enclosing_function(loop) if loop is not None else None
        if loop is None or function is None:
            return []
        entering = live_before(loop.body, frozenset(), function) & set(bound(self.loop.body))
        entering -= live_before(self.loop.body, frozenset(), self.function)
        entering -= certainly_bound_before(self.function, self.loop)
        now = kinds_before(self.function, self.loop.body[-1], self.kinds).names
        zeros = {"int": "0", "float": "0.0", "bool": "False"}
        return [
            f"{name} = {zeros[kind.type]}"
            for name in sorted(entering)
            if (kind := now.get(name, UNKNOWN_KIND)).what in ("number", "size", "scalar")
            and kind.type in zeros
        ]

    def _returned_next(self, value: str) -> bool:
        """Whether `value` is returned right behind the loop, however that was left."""
        block, index = self.source.block_of(self.loop)
        following = block[index + 1] if index + 1 < len(block) else None
        return (
            isinstance(following, ast.Return)
            and following.value is not None
            and self.source.of(following.value) == value
        )

    # --- the first round --------------------------------------------------------------------------------------

    def _unsure_names(self) -> list[str]:
        """The names that only the loop binds and that are read after it: without a first round they would have no
        value on one side of a branch on the flag."""
        certain = certainly_bound_before(self.function, self.loop) - self._placeholders()
        needed = self._read_later()
        return [name for name in bound(self.loop.body) if name in needed and name not in certain]

    def _read_later(self) -> frozenset[str]:
        """The names that are read when the loop is over, however that was left."""
        after = Liveness(self.function).live_after(self.loop)
        return after.union(*(reads(parse_python(each)) for each in self.returned))

    def _placeholders(self) -> set[str]:
        """The names that are None before the loop, and that its first round binds before it reads them."""
        if not self._runs() or "continues" in exits(self.loop.body):
            return set()
        before = kinds_before(self.function, self.loop, self.kinds)
        entering = live_before(self.loop.body, frozenset(), self.function)
        anew = always_bound(self._before_leaving(self.loop.body)) - entering
        return {name for name in anew if before.names.get(name, UNKNOWN_KIND).what == "none"}

    def _runs(self) -> bool:
        """Whether the loop certainly has a first round that nothing of tensor data decides."""
        loop = self.loop
        if isinstance(loop, ast.While):
            before = kinds_before(self.function, loop, self.kinds)
            return self.runs or _is_true(loop.test) or holds(loop.test, before)
        return has_rounds(loop.iter, self.kinds)

    def _counted(self) -> tuple[int, ast.expr] | None:
        """Where the range starts and what it stops before that the loop runs over, one by one; None where it runs over anything
        else."""
        loop = self.loop
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
            return None
        is_range = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "range"
        bounds = bounds_of(loop.iter) if is_range else None
        return bounds[:2] if bounds is not None and bounds[2] == 1 else None

    def _refuse_peeling(self, names: list[str]) -> None:
        if not self._runs():
            raise Refused(
                f"`{names[0]}` is bound by the loop, which may run no round at all, and read after it"
            )
        if "continues" in exits(self.loop.body):
            raise Refused(
                f"`{names[0]}` is bound by the loop and read after it, and the loop continues early"
            )
        if sum(isinstance(each, ast.stmt) for each in ast.walk(self.loop)) > _MOST_COPIED:
            raise Refused(
                f"`{names[0]}` is bound by the loop and read after it: its first round would have to be written out"
            )
        missing = set(names) - always_bound(self._before_leaving(self.loop.body))
        if missing:
            raise Refused(
                f"`{min(missing)}` is read after the loop, and may be unbound when the loop is left"
            )

    def _before_leaving(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements that run in every round, whatever leaves it."""
        return [
            *(
                each
                for each in statements[
                    : next((i for i, each in enumerate(statements) if self._leaves(each)), len(statements))
                ]
            )
        ]

    # --- writing -----------------------------------------------------------------------------------------------

    def _leaves(self, node: ast.stmt) -> bool:
        if isinstance(node, (ast.For, ast.While)):
            return "returns" in exits([node])
        return bool(exits([node]) & {"breaks", "returns", "raises"})

    def _block(self, statements: Sequence[ast.stmt], indent: str) -> str:
        """The statements with flags, at `indent`."""
        lines: list[str] = []
        plain: list[ast.stmt] = []
        for index, node in enumerate(statements):
            if not self._leaves(node):
                plain.append(node)
                continue
            if plain:
                lines.append(self.source.block(plain, indent))
                plain = []
            if isinstance(node, _LEAVING):
                lines += [indent + each for each in self.source.comments_between(*self.source.span([node]))]
                lines += self._left(node, f"{self.torch}.ones_like({self.flag})", indent)
                return self.nl.join(lines)
            if not isinstance(node, ast.If):
                raise Refused("the loop is left from inside a statement that is no `if`")
            alike, value = self._at_once(statements[index:])
            if value is not None:
                for each in alike:
                    lines += [indent + one for one in self.source.comments_between(*self.source.span([each]))]
                assert isinstance(alike[0].body[0], _LEAVING)
                lines += self._left(alike[0].body[0], value, indent)
            else:
                lines += self._branch(node, indent)
            rest = list(statements[index + (1 if value is None else len(alike)) :])
            if statements is self.loop.body and may_run_idly(rest, self._read_later()):
                lines += [self.source.block(rest, indent)] if rest else []
            elif rest:
                lines.append(f"{indent}if not {self.flag}:")
                lines.append(self._block(rest, indent + self.unit))
            return self.nl.join(lines)
        if plain:
            lines.append(self.source.block(plain, indent))
        return self.nl.join(lines) if lines else f"{indent}pass"

    def _at_once(self, statements: Sequence[ast.stmt]) -> tuple[list[ast.If], str | None]:
        """The first of `statements` that leave the loop in the same way, and the text of a tensor that says whether any does:
        data decides, or bounds that are compared. None for the text where that is to be asked one by one."""
        alike: list[ast.If] = []
        for each in statements:
            if not isinstance(each, ast.If) or each.orelse or len(each.body) != 1:
                break
            if not isinstance(each.body[0], _LEAVING):
                break
            if alike and ast.unparse(each.body[0]) != ast.unparse(alike[0].body[0]):
                break
            alike.append(each)
        texts: list[str] = []
        by_data = 0
        for at, each in enumerate(alike):
            now = kinds_before(self.function, each, self.kinds)
            predicates = Predicates(self.source, now, self.torch)
            parts = [self._part(one, now, predicates) for one in _alternatives(each.test)]
            if None in parts:
                alike = alike[:at]
                break
            texts += [text for text, _ in filter(None, parts)]
            by_data += sum(is_data for _, is_data in filter(None, parts))
        if len(texts) < 2 or not by_data:
            return alike, None
        return alike, " | ".join(f"({text})" for text in texts)

    def _part(self, test: ast.expr, kinds: Kinds, predicates: Predicates) -> tuple[str, bool] | None:
        """`test` as a text that is a bool tensor or compares numbers, and whether data decides it; None for any other."""
        try:
            condition = predicates.read(test)
        except Refused:
            return None
        if condition.form == "tensor" and not condition.guarded:
            return scalar_bool(condition), True
        if condition.form != "static" or not isinstance(test, ast.Compare) or len(test.ops) > 1:
            return None
        if not isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)):
            return None
        # What asks for a size would become a guard on it (measured on torch 2.13).
        sides = (test.left, test.comparators[0])
        return (condition.text, False) if all(kinds.of(each).what == "number" for each in sides) else None

    def _left(self, node: ast.stmt, value: str, indent: str) -> list[str]:
        """The lines that set the flags of one way out to `value`."""
        own = self.raised[node] if isinstance(node, ast.Raise) else self.flag
        if isinstance(node, ast.Return) and node.value is not None:
            own = self.returned[self.source.of(node.value)]
        lines = [f"{indent}{own} = {value}"]
        return lines if own == self.flag else [*lines, f"{indent}{self.flag} = {own}.clone()"]

    def _branch(self, node: ast.If, indent: str) -> list[str]:
        source = self.source
        now = kinds_before(self.function, node, self.kinds)
        predicates = Predicates(source, now, self.torch)
        first, last = source.span([node])
        above = [indent + each for each in source.comments_between(first, source.start(node))]
        comments = [indent + each for each in source.comments_between(source.end(node.test), last)]
        if not node.orelse and len(node.body) == 1 and isinstance(node.body[0], _LEAVING):
            try:
                condition = predicates.read(node.test)
            except Refused:
                condition = None
            if condition is not None and condition.form == "tensor":
                return [
                    *above,
                    *comments,
                    *self._left(node.body[0], scalar_bool(condition), indent),
                ]
        inner = indent + self.unit
        notes = source.comments_between(source.end(node.test), source.span(node.body)[0])
        lines = [*above, f"{indent}if {source.of(node.test)}:", *(inner + each for each in notes)]
        lines.append(self._block(node.body, inner))
        if node.orelse:
            notes = source.comments_between(source.span(node.body)[1], source.span(node.orelse)[0])
            lines += [f"{indent}else:", *(inner + each for each in notes), self._block(node.orelse, inner)]
        return lines

    def _header_end(self) -> int:
        """Just behind the colon of a `for` line."""
        assert isinstance(self.loop, ast.For)
        return self.source.text.index(":", self.source.end(self.loop.iter)) + 1


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _alternatives(test: ast.expr) -> list[ast.expr]:
    """The tests of which any one is enough for `test`."""
    if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)):
        return [test]
    return [one for each in test.values for one in _alternatives(each)]


def _grouped(source: Source, node: ast.expr) -> str:
    loose = isinstance(node, (ast.IfExp, ast.NamedExpr, ast.Lambda)) or (
        isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
    )
    return f"({source.of(node)})" if loose else source.of(node)


def _path(source: Source, node: ast.AST) -> tuple[tuple[str, int], ...]:
    """The fields and indices that lead from the tree's root to `node`."""
    steps: list[tuple[str, int]] = []
    while node in source.parents:
        parent = source.parents[node]
        for field, value in ast.iter_fields(parent):
            if isinstance(value, list):
                for index, each in enumerate(value):
                    if each is node:
                        steps.append((field, index))
        if not steps or getattr(parent, steps[-1][0])[steps[-1][1]] is not node:
            raise Refused("the loop stands in an unusual place")
        node = parent
    return tuple(reversed(steps))


def _undented(text: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in text.splitlines())
