"""How many items a list has where it is asked or read: what was certainly appended before, what tests say, and what the number
of a loop's round tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, fresh
from exportlens.rewriting.code.ranges import bounds_of, written_int
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds

_TURNED = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}
_OPPOSITE = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


@dataclass(frozen=True, slots=True)
class Numbered:
    """The `for` that appends one item in each round, what counts its rounds, and how many items the list has above that number
    before it appends. The `header` makes it count where it did not."""

    loop: ast.For
    append: ast.stmt
    name: str
    above: int
    header: tuple[Replacement, ...]


def numbered(
    source: Source, start: ast.stmt, appends: list[ast.stmt], held: int, taken: set[str]
) -> Numbered | None:
    """The loop whose round tells how many items there are; None where there is none."""
    loop = source.parents[appends[0]] if len(appends) == 1 else None
    if not isinstance(loop, ast.For) or appends[0] not in loop.body:
        return None
    block, _ = source.block_of(start)
    for outer in source.ancestors(loop):
        if loop in block or outer in block:
            break
        if isinstance(outer, (ast.For, ast.While)):
            return None
    if isinstance(next(iter(source.ancestors(loop)), None), (ast.For, ast.While)) and loop not in block:
        return None
    if "continues" in exits(loop.body[: loop.body.index(appends[0])]):
        return None
    counter, first = _counter(loop)
    if counter is not None and counter not in bound(loop.body):
        return Numbered(loop, appends[0], counter, held - first, ())
    name = fresh("number", taken)
    target, over = source.of(loop.target), source.of(loop.iter)
    target = f"({target})" if isinstance(loop.target, ast.Tuple) and not target.startswith("(") else target
    header = (source.swap(loop.target, f"{name}, {target}"), source.swap(loop.iter, f"enumerate({over})"))
    return Numbered(loop, appends[0], name, held, header)


def _counter(loop: ast.For) -> tuple[str | None, int]:
    """The name that counts the rounds of `loop`, one by one, and what it begins with."""
    bounds = bounds_of(loop.iter)
    if bounds is not None and ast.unparse(getattr(loop.iter, "func", loop.iter)) == "range":
        start, _, step = bounds
        return (loop.target.id if isinstance(loop.target, ast.Name) and step == 1 else None), start
    over = loop.iter
    if (
        isinstance(over, ast.Call)
        and ast.unparse(over.func) == "enumerate"
        and isinstance(loop.target, ast.Tuple)
    ):
        given = [*over.args[1:], *(each.value for each in over.keywords)]
        first = written_int(given[0]) if len(given) == 1 else 0 if not given else None
        name = loop.target.elts[0]
        return (name.id if isinstance(name, ast.Name) and first is not None else None), first or 0
    return None, 0


@dataclass
class Counts:
    source: Source
    name: str
    start: ast.stmt
    appends: list[ast.stmt]
    held: int
    number: Numbered | None
    kinds: Kinds

    def told(self, node: ast.AST) -> tuple[str, int] | None:
        """The number of the round at `node`, and how many items more the list has; None where it does not tell."""
        found = self.number
        if found is None:
            return None
        for outer in [node, *self.source.ancestors(node)]:
            if outer in found.loop.body:
                behind = found.loop.body.index(outer) > found.loop.body.index(found.append)
                return found.name, found.above + behind
        return None

    def is_told_by_rounds(self, node: ast.AST) -> bool:
        return self.told(node) is not None

    def swap(self, node: ast.expr, count: str, above: int) -> Replacement:
        """What asks `count` in the place of `node`, which is the list's length or its truth."""
        source = self.source
        parent = source.parents[node]
        if isinstance(node, ast.Name):
            negated = isinstance(parent, ast.UnaryOp)
            if above > 0:
                return source.swap(parent if negated else node, str(not negated))
            sign = ">" if not negated else "<=" if above else "=="
            return source.swap(parent if negated else node, f"{count} {sign} {-above}")
        if isinstance(parent, ast.Compare) and parent.left is node and len(parent.ops) == 1:
            other, compared = written_int(parent.comparators[0]), _SIGNS.get(type(parent.ops[0]))
            if other is not None and compared is not None:
                return source.swap(parent, f"{count} {compared} {other - above}")
        text = count if not above else f"{count} {'+' if above > 0 else '-'} {abs(above)}"
        return source.swap(node, text)

    def certain(self, node: ast.AST) -> int:
        """How many items were certainly appended before `node` runs."""
        block, at = self.source.block_of(self.start)
        found = 0
        statement = self.source.enclosing_statement(node)
        outer: ast.AST = statement
        while True:
            if isinstance(outer, ast.stmt):
                own, index = self.source.block_of(outer)
                begin = at + 1 if own is block else 0
                found += sum(map(self._appended_by, own[begin:index]))
                if own is block:
                    return found
            outer = self.source.parents[outer]

    def _appended_by(self, statement: ast.stmt) -> int:
        """How many items `statement` certainly appends, or has appended where it is left."""
        if statement in self.appends:
            return 1
        runs = (
            isinstance(statement, ast.While)
            and isinstance(statement.test, ast.Constant)
            and statement.test.value is True
        ) or (isinstance(statement, ast.For) and self.kinds.has_elements(statement.iter))
        if not runs or not isinstance(statement, (ast.While, ast.For)):
            return 0
        found = 0
        for each in statement.body:
            if each in self.appends:
                found += 1
            if exits([each]) != {"falls"}:
                break
        return found

    def least(self, node: ast.AST) -> int:
        """How many items there are at least where `node` runs, by what is asked before."""
        found = 0
        block, _ = self.source.block_of(self.start)
        inner = node
        for outer in self.source.ancestors(node):
            if isinstance(outer, ast.BoolOp) and inner in outer.values:
                holds = isinstance(outer.op, ast.And)
                before = outer.values[: outer.values.index(inner)]
                found = max([found, *(self._said(each, holds) for each in before)])
            elif isinstance(outer, (ast.If, ast.While)) and inner is not outer.test:
                found = max(found, self._said(outer.test, inner in outer.body))
            elif isinstance(outer, ast.IfExp) and inner is not outer.test:
                found = max(found, self._said(outer.test, inner is outer.body))
            if isinstance(inner, ast.stmt):
                own, index = self.source.block_of(inner)
                for each in own[:index]:
                    if isinstance(each, ast.If) and not each.orelse and "falls" not in exits(each.body):
                        found = max(found, self._said(each.test, False))
            if inner in block:
                break
            inner = outer
        return found

    def _said(self, test: ast.expr, holds: bool) -> int:
        """How many items there are at least where `test` holds, or does not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._said(test.operand, not holds)
        if isinstance(test, ast.BoolOp):
            every = isinstance(test.op, ast.And) is holds
            said = [self._said(each, holds) for each in test.values]
            return max(said) if every else min(said)
        above = self._above(test)
        if above is not None and holds:
            return above + 1
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return 0
        left, right, sign = test.left, test.comparators[0], type(test.ops[0])
        if written_int(left) is not None and sign in _TURNED:
            left, right, sign = right, left, _TURNED[sign]
        if not holds:
            sign = _OPPOSITE.get(sign, sign)
        above, limit = self._above(left, True), written_int(right)
        if above is None or limit is None or (not holds and type(test.ops[0]) not in _OPPOSITE):
            return 0
        if sign is ast.NotEq:
            return above + 1 if limit == 0 else 0
        return above + limit + (sign is ast.Gt) if sign in (ast.Gt, ast.GtE, ast.Eq) else 0

    def _above(self, node: ast.expr, compared: bool = False) -> int | None:
        """How many items the list has above the number that `node` is: its length, its truth, or the number of the round."""
        if isinstance(node, ast.Name) and node.id == self.name:
            return None if compared else 0
        if ast.unparse(node) == f"len({self.name})":
            return 0
        told = self.told(node)
        if told is None or not isinstance(node, ast.Name) or node.id != told[0]:
            return None
        # What begins below zero is true before it is above that.
        below = self.number is not None and self.held - self.number.above < 0
        return None if below and not compared else told[1]


def is_asked(source: Source, use: ast.expr) -> bool:
    """Whether only the truth of `use` is asked for."""
    inner: ast.AST = use
    for outer in source.ancestors(use):
        if isinstance(outer, ast.BoolOp):
            inner = outer
            continue
        if isinstance(outer, ast.UnaryOp):
            return isinstance(outer.op, ast.Not)
        return isinstance(outer, (ast.If, ast.IfExp, ast.While)) and outer.test is inner
    return False
