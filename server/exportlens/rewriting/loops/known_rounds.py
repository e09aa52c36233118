"""One round of a loop as it is written where it is known what some names hold in it: the questions that this answers are left out."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import assigned_pairs, bound, dotted
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import repeatable

# torch.cond(condition, one arm, the other one, operands)
_CONDITION_AND_ARMS = 4
# What a name that is no constant is known to be: not None, an int above zero, or what a caller gives, or None.
SET, POSITIVE, GIVEN = object(), object(), object()
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
_COMPUTED: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}
_JOINED = {ast.And: " and ", ast.Or: " or "}
Facts = dict[str, Any]


class KnownRound:
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
                    facts[target.id] = value.value if isinstance(value, ast.Constant) else SET
        elif isinstance(node, ast.AugAssign) and adds(node) and isinstance(node.target, ast.Name):
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
            known = self.facts.get(test.id, SET)
            return None if known is SET or known is GIVEN else known is POSITIVE or bool(known)
        if isinstance(test, ast.BinOp):
            number = self._number(test)
            return None if number is None else bool(number)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None
        compare = _COMPARED.get(type(test.ops[0]))
        numbers = self._number(test.left), self._number(test.comparators[0])
        if compare is not None and numbers[0] is not None and numbers[1] is not None:
            return compare(*numbers)
        if not isinstance(test.left, ast.Name):
            return None
        return self._compared(test.left.id, test.ops[0], test.comparators[0])

    def _number(self, node: ast.expr) -> int | None:
        """The int that `node` is, computed of what is known: `n % 10`."""
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.Name):
            known = self.facts.get(node.id)
            return known if type(known) is int else None
        if not isinstance(node, ast.BinOp) or type(node.op) not in _COMPUTED:
            return None
        left, right = self._number(node.left), self._number(node.right)
        if left is None or right is None or (not right and isinstance(node.op, (ast.Mod, ast.FloorDiv))):
            return None
        return _COMPUTED[type(node.op)](left, right)

    def _compared(self, name: str, op: ast.cmpop, other: ast.expr) -> bool | None:
        if name not in self.facts or not isinstance(other, ast.Constant):
            return None
        known = self.facts[name]
        if known is GIVEN:
            return None
        if isinstance(op, (ast.Is, ast.IsNot)):
            if other.value is None:
                return (known is None) is isinstance(op, ast.Is)
            return None
        compare = _COMPARED.get(type(op))
        if compare is None or type(other.value) is not int or known is None or known is SET:
            return None
        if known is not POSITIVE:
            return compare(known, other.value)
        if other.value == 0:
            return compare(1, 0)
        # Of any int from 1 on.
        at_one = {ast.GtE: True, ast.Lt: False}
        return at_one.get(type(op)) if other.value == 1 else None


def _common(ends: list[Facts]) -> Facts:
    return {
        name: value
        for name, value in ends[0].items()
        if all(each.get(name, POSITIVE) is value for each in ends)
    }


def adds(node: ast.stmt) -> bool:
    """Whether `node` counts up."""
    return (
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
        and node.value.value > 0
    )
