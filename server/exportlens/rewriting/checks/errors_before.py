"""Errors by options behind a branch that leaves: the option asks before the branch, and only there is an error raised.

    if t.sum() == 0:                     if x.shape[0] != n:
        return t                             if t.sum() != 0:
    if x.shape[0] != n:                          raise ValueError("n")
        raise ValueError("n")     ->         return t
    return t * x                         if t.sum() == 0:
                                             return t
                                         return t * x

What follows becomes a function of torch.cond's, which is traced whatever the data says, and must not raise there. Where the option
asks for the error nothing of it is traced.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from exportlens.rewriting.checks.assertions import refuse_where_caught
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, reads
from exportlens.rewriting.code.precedence import operand
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import repeatable
from exportlens.source.walking import walk

# What an option may be asked with: it changes nothing, and is the same a few lines before.
_ASKING = frozenset({"dim", "hasattr", "isinstance", "len", "numel", "size"})

# How many statements of the way that leaves are written once more.
_LONGEST = 2


def errors_asked_before(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    """The text where the errors by options behind `node` are raised before it, and `node` of it; None where there are none, or where
    it is not known that they would be the same."""
    if node.orelse or exits(node.body) not in ({"returns"}, {"continues"}) or not source.begins_line(node):
        return None
    if len(node.body) > _LONGEST or not source.begins_line(node.body[0]):
        return None
    if source.text.startswith("elif", source.start(node)) or not repeatable(node.test, kinds):
        return None
    block, index = source.block_of(node)
    found = _Errors(source, Predicates(source, kinds, torch))
    try:
        refuse_where_caught(source, node)
        found.see(block[index + 1 :], [], [])
    except Refused:
        return None
    if not found.checks:
        return None
    nl, indent, unit = source.newline, source.indent_of(node), source.indent_unit()
    falls = _negated(source, node.test)
    lines = []
    for options, error in found.checks:
        lines += [f"{indent}if {' and '.join(options)}:", f"{indent}{unit}if {falls}:"]
        lines += [source.block([error], indent + 2 * unit), source.block(node.body, indent + unit)]
    head = "".join(each + nl for each in lines)
    begin = source.line_start(source.span([node])[0])
    changed = Source(replaced(source.text, [Replacement(begin, begin, head), *found.removed]))
    return changed, changed.branch_at(source.start(node) + len(head))


@dataclass
class _Errors:
    source: Source
    predicates: Predicates
    # Each error, with what is asked before it is raised.
    checks: list[tuple[list[str], ast.stmt]] = field(default_factory=list)
    removed: list[Replacement] = field(default_factory=list)

    def see(self, block: Sequence[ast.stmt], options: list[str], passed: list[ast.stmt]) -> None:
        """Take the errors of `block`, which is reached where all of `options` hold, behind the statements `passed`. Raises Refused."""
        for each in block:
            ways = exits([each])
            if "raises" in ways:
                if not isinstance(each, ast.If) or not self._is_option(each.test, passed):
                    raise Refused("an error that no option asks for")
                self._arm(each, each.body, [*options, _within(self.source, each.test)], passed)
                if each.orelse:
                    self._arm(each, each.orelse, [*options, _negated(self.source, each.test)], passed)
            if ways - {"falls", "raises"}:
                # What follows is not reached for certain.
                if any("raises" in exits([later]) for later in block[block.index(each) + 1 :]):
                    raise Refused("an error that is not reached for certain")
                return
            passed = [*passed, each]

    def _arm(self, node: ast.If, arm: list[ast.stmt], options: list[str], passed: list[ast.stmt]) -> None:
        if exits(arm) != {"raises"}:
            self.see(arm, options, passed)
            return
        source, error = self.source, arm[0]
        if len(arm) > 1 or not isinstance(error, ast.Raise) or error.exc is None:
            raise Refused("more than an error")
        if reads(error) & set(bound(passed)) or not source.begins_line(error):
            raise Refused("the error tells of what is computed before it")
        self.checks.append((options, error))
        if arm is node.body and node.orelse:
            raise Refused("what is left would have no body")
        if arm is node.orelse:
            self.removed.append(Replacement(source.span(node.body)[1], source.span(arm)[1], ""))
            return
        alone = not source.text.startswith("elif", source.start(node))
        removed = source.without(node) if alone else None
        if removed is None:
            raise Refused("what is left would have no body")
        self.removed.append(removed)

    def _is_option(self, test: ast.expr, passed: list[ast.stmt]) -> bool:
        """Whether `test` asks for what no tensor data decides, and what the statements `passed` leave as it is."""
        if reads(test) & set(bound(passed)) or not self.source.begins_line(
            self.source.enclosing_statement(test)
        ):
            return False
        paths = {dotted(each) for each in walk(test) if isinstance(each, ast.Attribute)}
        for each in (each for one in passed for each in walk(one)):
            if isinstance(each, (ast.Attribute, ast.Subscript)) and not isinstance(each.ctx, ast.Load):
                target = each.value if isinstance(each, ast.Subscript) else each
                if dotted(target) in paths:
                    return False
        for each in walk(test):
            if isinstance(each, ast.NamedExpr):
                return False
            if isinstance(each, ast.Call) and ast.unparse(each.func).rpartition(".")[2] not in _ASKING:
                return False
        return self.predicates.read(test).form == "static"


def _within(source: Source, test: ast.expr) -> str:
    """The text of `test` beside an `and`."""
    return operand(source.of(test), "and")


def _negated(source: Source, test: ast.expr) -> str:
    """The text that asks for the opposite of `test`, beside an `and`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _within(source, test.operand)
    return f"not {operand(source.of(test), 'not')}"
