"""What a loop on tensor data goes on by: the condition of a `while`, or a counter below the number that a `for` runs to."""

from __future__ import annotations

import ast

from exportlens.inference.values import Value
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.ranges import bounds_of, written_int
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.loop_memory import LoopMemory
from exportlens.source.parsing import parse_python


class LoopCondition(LoopMemory):
    """The condition of the loop `node`; `value` is what the interpreter knows of it."""

    def __init__(
        self,
        source: Source,
        node: ast.While | ast.For,
        function: ast.FunctionDef,
        kinds: Kinds,
        torch: str,
        value: Value | None,
    ) -> None:
        super().__init__(source, node, function, kinds, torch)
        self.value = value
        self.taken = every_name(source.tree)

    def counter(self) -> str:
        node = self.node
        if not isinstance(node, ast.For) or not (
            isinstance(node.iter, ast.Call)
            and isinstance(node.iter.func, ast.Name)
            and node.iter.func.id == "range"
            and isinstance(node.target, ast.Name)
            and bounds_of(node.iter) is not None
        ):
            raise Refused(
                "only `for i in range(n)` from a number that is written, in steps that are, becomes a while_loop"
            )
        if node.target.id in self.live.live_after(node):
            raise Refused(f"`{node.target.id}` is used after the loop")
        for each in ast.walk(node):
            if isinstance(each, ast.Subscript) and node.target.id in reads(each.slice):
                raise Refused(
                    f"`{self.source.of(each)}` takes an item by the loop's counter, which while_loop makes symbolic"
                )
        return node.target.id if node.target.id != "_" else fresh("step", self.taken)

    def condition(self, inside: Kinds, counter: str | None) -> str:
        predicates = Predicates(self.source, inside, self.torch)
        if isinstance(self.node, ast.While):
            return predicates.for_loop(self.node.test, self.value)
        call = self.node.iter
        assert isinstance(call, ast.Call)
        bounds = bounds_of(call)
        assert bounds is not None
        _, stop, step = bounds
        limit = predicates.number_as_tensor(stop) or self._computed(stop, predicates)
        if limit is None and _reads_item(stop) and inside.of(stop).what == "scalar":
            limit = self.source.of(stop)
        if limit is None and isinstance(stop, ast.Name):
            limit = self._read_again(stop.id, inside)
        if limit is None:
            raise Refused(f"`{self.source.of(stop)}` is a Python number already: give the tensor to `range`")
        number = inside.of(parse_python(limit, mode="eval").body)
        if number.what == "tensor" and number.rank != 0:
            limit = f"{primary(limit)}.reshape(())"
        return f"{counter} {'<' if step > 0 else '>'} {limit}"

    def _computed(self, node: ast.expr, predicates: Predicates) -> str | None:
        """`node`, a name or whole numbers added to and taken from one, with the tensor whose number the name is."""
        if isinstance(node, ast.Name):
            return self._read_from(node.id, predicates)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._number(node.operand, predicates)
            return None if inner is None else f"-{inner}"
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
            return None
        sign = "+" if isinstance(node.op, ast.Add) else "-"
        left, right = written_int(node.left), written_int(node.right)
        if right is not None:
            inner = self._number(node.left, predicates)
            return None if inner is None else f"{inner} {sign} {right}"
        inner = None if left is None else self._number(node.right, predicates)
        return None if inner is None else f"{left} {sign} {inner}"

    def _number(self, node: ast.expr, predicates: Predicates) -> str | None:
        """`node` as a number again: tensors of small dtypes would compute on in these."""
        inner = self._computed(node, predicates)
        if inner is None:
            return None
        return f"{primary(inner)}.item()" if isinstance(node, ast.Name) else f"({inner})"

    def _read_from(self, name: str, predicates: Predicates) -> str | None:
        """The tensor whose number `name` is, where it is still the same when the loop runs: while_loop takes no
        number from data from outside."""
        value = self._only_value(name)
        return None if value is None else predicates.number_as_tensor(value)

    def _read_again(self, name: str, inside: Kinds) -> str | None:
        """What computes the number `name` from numbers that it reads out of tensors, where it gives the same inside of the loop:
        `n = t.max().item() + 1`."""
        value = self._only_value(name)
        if value is None or inside.of(value).what != "scalar" or inside.of(value).type != "int":
            return None
        plain = isinstance(value, ast.BinOp) and all(
            _reads_item(each) or written_int(each) is not None for each in (value.left, value.right)
        )
        return f"({self.source.of(value)})" if plain else None

    def _only_value(self, name: str) -> ast.expr | None:
        """What `name` is bound to, where nothing else is and what it reads is still the same when the loop runs."""
        statements = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Assign)
            and any(isinstance(one, ast.Name) and one.id == name for one in each.targets)
        ]
        if len(statements) != 1 or len(statements[0].targets) != 1:
            return None
        needed = reads(statements[0].value)
        start = self.source.end(statements[0])
        rebound = {
            each.id
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name)
            and not isinstance(each.ctx, ast.Load)
            and self.source.start(each) > start
        }
        written = self.written_later() | set(self.written())
        return None if needed & (rebound | written) else statements[0].value


def _reads_item(node: ast.expr) -> bool:
    """Whether the number is read where it stands, inside of the condition."""
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "item"
        for each in ast.walk(node)
    )
