"""Counts of the uses of a name, by kinds of use, and the expressions that stand for what it holds."""

from __future__ import annotations

import ast

from exportlens.inference.machine import Machine
from exportlens.inference.number_names import called_like_a_number
from exportlens.inference.values import Function
from exportlens.source.walking import walk

_KINDS = (
    "strong", "weak", "decimal", "container", "mapping", "flag", "number", "compared", "decided", "read", "picked", "weighed",
    "index", "iterated", "reckoned", "object", "asked", "negated", "chosen", "floated",
    "placed", "measured", "bounding", "parts", "parts_asked", "truths",
)  # fmt: skip


class CountedName:
    """The parameter `name` of `function`, or what a loop or a binding calls it on `lines`, and how often it is used as what."""

    def __init__(
        self, machine: Machine, function: Function, name: str, depth: int = 0, lines: range | None = None
    ) -> None:
        self.machine = machine
        self.function = function
        self.name = name
        self.depth = depth
        self.lines = lines  # None: all of them
        self.strong = self.weak = self.decimal = self.container = self.mapping = 0
        self.flag = self.number = self.iterated = self.reckoned = self.object = self.asked = 0
        self.negated = self.chosen = self.compared = self.decided = self.read = self.index = 0
        self.picked = self.weighed = self.floated = self.placed = self.measured = self.bounding = 0
        # Items at computed indices: used as tensors alone are, compared in tests.
        self.parts = self.parts_asked = 0
        # Of `flag`, the tests that ask for its truth and no text.
        self.truths = 0
        self.tests: set[int] = set()
        self.masks: set[str] = set()  # names of what it was compared with

    def is_it(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Name)
            and node.id == self.name
            and (self.lines is None or node.lineno in self.lines)
        )

    def count(self, other: CountedName) -> None:
        for kind in _KINDS:
            setattr(self, kind, getattr(self, kind) + getattr(other, kind))

    def is_mask(self, node: ast.expr) -> bool:
        """`x > 0`, or a name for it: in `x[x > 0]` the items that meet a condition are chosen, which no list can."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self.is_mask(node.operand)
        if isinstance(node, ast.Compare):
            return self.is_it(node.left) and not isinstance(
                node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)
            )
        return isinstance(node, ast.Name) and node.id in self.masks

    def count_converted(self, node: ast.expr) -> None:
        """Count `int(mode) == 0`, `bool(flag)`: a number or a truth value needs no conversion to be asked or computed with."""
        self.strong += sum(
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Name)
            and each.func.id in ("int", "float", "bool")
            and len(each.args) == 1
            and self.is_it(each.args[0])
            and not called_like_a_number(self.name)
            for each in walk(node)
        )

    def is_item(self, node: ast.expr) -> bool:
        """`rows[i]`, whatever `i` is."""
        return (
            isinstance(node, ast.Subscript)
            and self.is_it(node.value)
            and not isinstance(node.slice, (ast.Slice, ast.Tuple))
        )

    def is_part(self, node: ast.expr) -> bool:
        """`rows[i]`, where the index is computed: all its items are of one kind then."""
        computed = isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.UnaryOp))
        return computed and self.is_item(node)

    def reckons_with(self, node: ast.expr | None) -> bool:
        """Whether `node` is the parameter, a sum or product with it, or an int that is made of such: `n`, `n + 1`, `int(n * 0.5)`."""
        if isinstance(node, ast.BinOp):
            return self.reckons_with(node.left) or self.reckons_with(node.right)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("int", "round")
        ):
            return any(isinstance(each, ast.BinOp) and self.reckons_with(each) for each in node.args)
        return node is not None and self.is_it(node)


def is_compared(function: ast.AST, name: str) -> bool:
    """Whether a test of `function` compares `name` by its size."""
    tests = (each.test for each in walk(function) if isinstance(each, (ast.If, ast.While, ast.IfExp)))
    return any(
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == name
        and isinstance(test.ops[0], (ast.Gt, ast.Lt, ast.GtE, ast.LtE))
        for test in tests
    )
