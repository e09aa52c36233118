"""How many rounds the loops around what fills a list have at most, where no data decides that."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from exportlens.inference.values import Const
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.plain_items import is_plain
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

_SIZES = ("number", "size")
_UP_TO = (ast.Lt, ast.LtE)
_ITERATORS = (
    "iter",
    "map",
    "filter",
    "zip",
    "enumerate",
    "reversed",
    "count",
    "cycle",
    "repeat",
    "islice",
    "chain",
)
# Methods that give a tensor as long as the one that they are called on, and functions of torch that do.
_SAME_LENGTH = (
    "argsort",
    "detach",
    "cpu",
    "clone",
    "long",
    "int",
    "float",
    "double",
    "bool",
    "abs",
    "round",
    "flip",
    "numpy",
)
_ALIKE = ("torch.argsort", "torch.flip", "torch.abs", "torch.round")


@dataclass
class MostRounds:
    """The rounds of `loop`, in front of which the list `name` begins; `kinds` are those there."""

    source: Source
    loop: ast.For | ast.While
    name: str
    kinds: Kinds

    def most(self, appends: Sequence[ast.stmt]) -> str | None:
        """How many items `appends` add at most; None where it is as many whatever the ways through the rounds are, too."""
        loops = self._loops(appends[0])
        if any(self._loops(each) != loops for each in appends):
            return None
        times = most_on_a_way(loops[-1].body, set(appends))[1]
        if not self._may_skip(loops, appends, times):
            return None
        rounds = self._all_rounds(loops, times)
        if rounds is None or self._is_bound_anew():
            return None
        if times > 1:
            grouped = isinstance(parse_python(rounds, mode="eval").body, ast.BinOp)
            rounds = f"({rounds})" if grouped else rounds
        return rounds if times == 1 else f"{times} * {rounds}"

    def _may_skip(
        self, loops: Sequence[ast.For | ast.While], appends: Sequence[ast.stmt], times: int
    ) -> bool:
        """Whether some rounds add fewer items than others."""
        if any(exits(each.body) & {"breaks", "continues", "returns"} for each in loops):
            return True
        if any(
            isinstance(each, ast.While) and isinstance(each.test, (ast.BoolOp, ast.Call)) for each in loops
        ):
            # What it asks beside how many there are may end it before.
            return True
        return (
            any(self._is_chosen(each) for each in loops[1:]) or _least(loops[-1].body, set(appends)) < times
        )

    def _is_chosen(self, loop: ast.For | ast.While) -> bool:
        """Whether an inner loop stands in a branch."""
        return isinstance(self.source.parents[loop], ast.If)

    def _length(self, node: ast.expr) -> str | None:
        """The length of a tensor that is computed once more."""
        kind, text = self.kinds.of(node), self.source.of(node)
        plain = is_plain(node, self.kinds) and "\n" not in text and not self._is_bound_anew()
        return f"len({text})" if plain and (kind.rank or 1) > 0 else None

    def _is_bound_anew(self) -> bool:
        """Whether the rounds bind anew what tells their number."""
        return isinstance(self.loop, ast.For) and bool(reads(self.loop.iter) & set(bound(self.loop)))

    def _loops(self, append: ast.stmt) -> list[ast.For | ast.While]:
        """The loops around `append`, from the outermost, in front of which the list begins."""
        found: list[ast.For | ast.While] = []
        for outer in self.source.ancestors(append):
            if isinstance(outer, (ast.For, ast.While)):
                found.append(outer)
            if outer is self.loop:
                break
        return found[::-1]

    def _all_rounds(self, loops: Sequence[ast.For | ast.While], times: int) -> str | None:
        """The greatest number of rounds of the innermost of `loops`, in all rounds of those around it."""
        if isinstance(loops[0], ast.While):
            return self._rounds_asked(times) if len(loops) == 1 else None
        found: list[str] = []
        for each in loops:
            assert isinstance(each, ast.For)
            text = self._rounds_inside(each) if each is not self.loop else self.of(each.iter)
            if text is None:
                return None
            found.append(f"({text})" if isinstance(parse_python(text, mode="eval").body, ast.BinOp) else text)
        return found[0][1:-1] if len(found) == 1 and found[0].startswith("(") else " * ".join(found)

    def _rounds_inside(self, loop: ast.For) -> str | None:
        """As `_rounds`, of an inner loop: `range(i + 1, n)` has no more than `n` rounds."""
        over, changed = loop.iter, set(bound(self.loop))
        if not reads(over) & changed:
            return self.of(over)
        if not isinstance(over, ast.Call) or dotted(over.func) != "range" or len(over.args) != 2:
            return None
        begin, end = over.args
        number = begin.left if isinstance(begin, ast.BinOp) and isinstance(begin.op, ast.Add) else begin
        more = begin.right if isinstance(begin, ast.BinOp) else ast.Constant(0)
        is_more = isinstance(more, ast.Constant) and type(more.value) is int and more.value >= 0
        if not is_more or not isinstance(number, ast.Name) or reads(end) & changed:
            return None
        if not self._counts_from_zero(number.id) or stored_in(self.loop).count(number.id) != 1:
            return None
        return self.source.of(end) if self.kinds.of(end).what in _SIZES else None

    def _counts_from_zero(self, name: str) -> bool:
        """Whether one of the loops counts `name` from 0."""
        for each in (one for one in walk(self.loop) if isinstance(one, ast.For)):
            called = (
                dotted(each.iter.func)
                if isinstance(each.iter, ast.Call) and len(each.iter.args) == 1
                else None
            )
            target = each.target
            if called == "enumerate" and isinstance(target, ast.Tuple):
                target = target.elts[0]
            if called in ("range", "enumerate") and isinstance(target, ast.Name) and target.id == name:
                return not (isinstance(each.iter, ast.Call) and each.iter.keywords)
        return False

    def _rounds_asked(self, times: int) -> str | None:
        """As `_rounds`, of a `while` that asks how many items there are, or counts up from a number that is not negative."""
        test, source = self.loop.test if isinstance(self.loop, ast.While) else None, self.source
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        for part in parts:
            marked = self._marked(part)
            if marked is not None:
                return f"len({marked})"
            if not isinstance(part, ast.Compare) or len(part.ops) != 1 or not isinstance(part.ops[0], _UP_TO):
                continue
            limit = part.comparators[0]
            more = " + 1" if isinstance(part.ops[0], ast.LtE) else ""
            kind = self.kinds.of(limit)
            if kind.what not in _SIZES or kind.type != "int" or reads(limit) & set(bound(self.loop)):
                continue
            if any(isinstance(each, ast.Call) and dotted(each.func) != "len" for each in walk(limit)):
                continue
            text = f"({source.of(limit)}{more})" if more or isinstance(limit, ast.BinOp) else source.of(limit)
            if ast.unparse(part.left) == f"len({self.name})" and times == 1 and not more:
                return text
            if self._counts_up(part.left):
                return text
        return None

    def _marked(self, part: ast.expr | None) -> str | None:
        """The mask of `mask.any()`, of which each round takes one away (see `loops.shrinking_rows`)."""
        call = part if isinstance(part, ast.Call) and not part.args else None
        if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "any":
            return None
        name = dotted(call.func.value)
        values = {
            each.targets[0].id: ast.unparse(each.value)
            for each in self.loop.body
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        }
        stored = stored_in(self.loop)
        fewer = [
            one
            for one, text in values.items()
            if text.startswith(f"{name}.index_fill(0, ") and text.endswith(", False)")
        ]
        ends = any(
            values.get(name or "", "").startswith(f"{one} & ") and stored.count(one) == 1 for one in fewer
        )
        there = name is not None and self.kinds.names.get(name, UNKNOWN_KIND).what == "tensor"
        return name if there and ends and name is not None and stored.count(name) == 1 else None

    def _counts_up(self, counter: ast.expr) -> bool:
        """Whether `counter`, with something added to it, begins at 0 or above and grows in each round that goes on."""
        if isinstance(counter, ast.BinOp) and isinstance(counter.op, ast.Add):
            more = counter.right
            if not (isinstance(more, ast.Constant) and type(more.value) is int and more.value >= 0):
                return False
            counter = counter.left
        if not isinstance(counter, ast.Name):
            return False
        name = counter.id
        start = self.kinds.names.get(name, UNKNOWN_KIND)
        begins = start.value.value if isinstance(start.value, Const) else None
        if type(begins) is not int or begins < 0:
            return False
        steps = [each for each in self.loop.body if name in bound(each)]
        if len(steps) != 1 or sum(one == name for one in stored_in(self.loop)) != 1:
            return False
        step = steps[0]
        before = self.loop.body[: self.loop.body.index(step)]
        if any("continues" in exits([each]) for each in before):
            return False
        grows = isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add)
        value = step.value if grows and isinstance(step, ast.AugAssign) else None
        return isinstance(value, ast.Constant) and type(value.value) is int and value.value > 0

    def of(self, over: ast.expr) -> str | None:
        """The greatest number of rounds, which no data decides."""
        kinds, source = self.kinds, self.source
        if isinstance(over, ast.Call) and not over.keywords and not isinstance(over.func, ast.Attribute):
            called = ast.unparse(over.func)
            if called == "range":
                if any(kinds.of(each).what not in _SIZES for each in over.args):
                    return None
                return source.of(over.args[0]) if len(over.args) == 1 else f"len({source.of(over)})"
            if called in ("enumerate", "zip", "reversed") and over.args:
                found = [self.of(each) for each in (over.args if called == "zip" else over.args[:1])]
                return next((each for each in found if each is not None), None)
            return None
        if isinstance(over, ast.Call):
            assert isinstance(over.func, ast.Attribute)
            if kinds.qualified(over.func) in _ALIKE and over.args:
                return self.of(over.args[0])
            if over.func.attr == "flatten" and not over.args and kinds.of(over.func.value).what == "tensor":
                whole = over.func.value
                return f"{source.of(whole)}.numel()" if dotted(whole) is not None else None
            if over.func.attr not in ("tolist", *_SAME_LENGTH) or kinds.of(over.func.value).what != "tensor":
                return None
            inner = self.of(over.func.value)
            return inner if inner is not None or over.func.attr != "tolist" else self._length(over.func.value)
        kind = kinds.of(over)
        part = isinstance(over, ast.Subscript) and dotted(over.value) is not None
        function = source.enclosing_function(self.loop)
        if not (part or dotted(over) is not None) or "\n" in source.of(over):
            return None
        if function is None or is_iterator(over, function):
            return None
        if part and not is_plain(over, kinds):
            return None
        if kind.what == "tensor" and (kind.rank or 1) > 0:
            return f"len({source.of(over)})"
        return f"len({source.of(over)})" if kinds.has_elements(over) else None


def is_iterator(node: ast.expr, function: Function) -> bool:
    """Whether `node`, or what `function` binds its name to, may be what goes on where it was left, and has no length."""
    values = [node]
    if isinstance(node, ast.Name):
        values = [
            each.value
            for each in walk(function)
            if isinstance(each, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
            and each.value is not None
            and node.id in bound(each)
        ]
    return any(
        isinstance(each, ast.GeneratorExp)
        or (isinstance(each, ast.Call) and ast.unparse(each.func).rpartition(".")[2] in _ITERATORS)
        for one in values
        for each in walk(one)
    )


def stored_in(loop: ast.AST) -> list[str]:
    return [
        each.id for each in walk(loop) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]


def most_on_a_way(block: Sequence[ast.stmt], appends: set[ast.stmt]) -> tuple[int | None, int]:
    """How often `block` appends at most on a way that falls out of its end, None where none does, and on any way."""
    falls: int | None = 0
    most = 0
    for each in block:
        if falls is None:
            break
        if each in appends:
            falls += 1
        elif isinstance(each, ast.If):
            ways = [most_on_a_way(arm, appends) for arm in (each.body, each.orelse)]
            most = max(most, *(falls + way[1] for way in ways))
            ended = [falls + way[0] for way in ways if way[0] is not None]
            falls = max(ended) if ended else None
        elif exits([each]) != {"falls"} and isinstance(
            each, (ast.Continue, ast.Break, ast.Return, ast.Raise)
        ):
            most = max(most, falls)
            falls = None
    return falls, max(most, falls or 0)


def _least(block: Sequence[ast.stmt], appends: set[ast.stmt]) -> int:
    """How often `block`, which nothing leaves, appends at least."""
    return sum(
        1
        if each in appends
        else min(_least(each.body, appends), _least(each.orelse, appends))
        if isinstance(each, ast.If)
        else 0
        for each in block
    )
