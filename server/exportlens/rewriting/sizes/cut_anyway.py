"""The last `n` rows, and all of them where `n` is 0: a question about a size that the slice answers itself.

    if n > 0:
        y = self.head(x[:, -n:])
    else:                             ->  y = self.head(x[:, -n:])
        y = self.head(x)

Python's `x[:, -0:]` is all of `x`. A size is never below zero, and torch.cond gives no tensor of which data tells a size behind
the first.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.names import bound, dotted, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import repeatable
from exportlens.rewriting.memory.placed_views import assigned
from exportlens.rewriting.numbers.given_numbers import given_by_calls
from exportlens.source.walking import walk

CUT_ANYWAY = "Cut the last rows without the question: `x[-0:]` is all of `x`"
# How often a name is followed to what it is bound to, or to what calls give.
_DEEPEST = 4
# Comparisons of `n`, and whether they are true for more or for none.
_MORE, _NONE = True, False
_TESTS: dict[tuple[type[ast.cmpop], int], bool] = {
    (ast.Gt, 0): _MORE, (ast.NotEq, 0): _MORE, (ast.GtE, 1): _MORE,
    (ast.Eq, 0): _NONE, (ast.LtE, 0): _NONE, (ast.Lt, 1): _NONE,
}  # fmt: skip


def cut_anyway(
    source: Source, node: ast.If | ast.IfExp, kinds: Kinds, file: Sequence[ast.stmt]
) -> str | None:
    """The whole text without the question of `node`; None where it does something else for no rows than for some. `file` are the
    statements of the file, those of `source` as its own nodes."""
    asked = _asked(node.test)
    function = source.enclosing_function(node)
    if asked is None or function is None or not repeatable(node.test, kinds):
        return None
    if not _Counts(file).has(asked[0], function):
        return None
    arms = _Arms(kinds, ast.unparse(asked[0]), reads(asked[0]))
    if isinstance(node, ast.IfExp):
        some, none = (node.body, node.orelse) if asked[1] is _MORE else (node.orelse, node.body)
        if not arms.are_same([ast.Expr(some)], [ast.Expr(none)]):
            return None
        return replaced(source.text, [source.swap(node, source.of(some))])
    if not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return None
    block, at = source.block_of(node)
    other, following = node.orelse, []
    if not other and isinstance(node.body[-1], ast.Return):
        other = following = block[at + 1 :]
    first, second = (node.body, other) if asked[1] is _MORE else (other, node.body)
    if not first or not second or not arms.are_same(first, second):
        return None
    start, end = source.start(node), source.span([node, *following])[1]
    text = source.block(first, source.indent_of(node)).lstrip(" \t")
    if source.comments_lost(start, end, text):
        return None
    return replaced(source.text, [Replacement(start, end, text)])


def _asked(test: ast.expr) -> tuple[ast.expr, bool] | None:
    """The number that `test` compares with 0, and whether the test is true for more or for none; None where it is no such test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand, _NONE
    if not isinstance(test, ast.Compare):
        return test, _MORE
    if len(test.ops) != 1 or not isinstance(test.comparators[0], ast.Constant):
        return None
    limit = test.comparators[0].value
    holds = _TESTS.get((type(test.ops[0]), limit)) if type(limit) is int else None
    return None if holds is None else (test.left, holds)


class _Counts:
    """Which numbers are never below 0, as each says how long something is, in a file of these statements."""

    def __init__(self, file: Sequence[ast.stmt]) -> None:
        nodes = [each for statement in file for each in walk(statement)]
        self.file, self.classes = file, [each for each in nodes if isinstance(each, ast.ClassDef)]
        self.functions = [each for each in nodes if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]

    def has(self, node: ast.expr, function: Function, depth: int = _DEEPEST) -> bool:
        """Whether `node` of `function` is one: also a parameter that every call in the file gives such a number."""
        if isinstance(node, ast.Call):
            is_size = isinstance(node.func, ast.Attribute) and node.func.attr == "size"
            return is_size or dotted(node.func) == "len"
        if isinstance(node, ast.Subscript):
            node = node.value
        if isinstance(node, ast.Attribute):
            return node.attr == "shape"
        if not isinstance(node, ast.Name) or not depth:
            return False
        stores = sum(
            isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
            for each in walk(function)
        )
        if stores:
            values = list(assigned(node.id, function))
            return len(values) == stores and all(self.has(each, function, depth - 1) for each in values)
        cls = next((each for each in self.classes if function in each.body), None)
        given = None if cls is None else given_by_calls(self.file, cls, function, node.id, None)
        return bool(given) and all(self._is_given(each, depth - 1) for each in given or ())

    def _is_given(self, node: ast.expr, depth: int) -> bool:
        around = [each for each in self.functions if node in walk(each)]
        return len(around) == 1 and self.has(node, around[0], depth)


class _Arms:
    """Two arms of which the first one cuts the last `count` rows off that the second one takes whole."""

    def __init__(self, kinds: Kinds, count: str, names: set[str]) -> None:
        self.kinds, self.count, self.names, self.cuts = kinds, count, names, 0

    def are_same(self, some: list[ast.stmt], none: list[ast.stmt]) -> bool:
        return not self.names & set(bound(some)) and self._alike(some, none) and self.cuts > 0

    def _alike(self, one: object, other: object) -> bool:
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(self._alike, one, other))
        if isinstance(one, ast.Subscript) and self._is_cut(one.slice) and self._alike(one.value, other):
            self.cuts += 1
            return self.kinds.of(one.value).what == "tensor"
        if not isinstance(one, ast.AST) or not isinstance(other, ast.AST):
            return one == other
        return type(one) is type(other) and all(
            self._alike(getattr(one, field, None), getattr(other, field, None)) for field in one._fields
        )

    def _is_cut(self, index: ast.expr) -> bool:
        """Whether `index` takes the last `count` along one dimension, and all of the others: `[:, -n:]`."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        cuts = [each for each in parts if isinstance(each, ast.Slice) and each.lower is not None]
        whole = [ast.unparse(each) for each in parts if each not in cuts]
        if len(cuts) != 1 or any(each not in (":", "...") for each in whole):
            return False
        [cut] = cuts
        lower = cut.lower
        if cut.upper is not None or cut.step is not None or not isinstance(lower, ast.UnaryOp):
            return False
        return isinstance(lower.op, ast.USub) and ast.unparse(lower.operand) == self.count
