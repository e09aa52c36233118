"""Numbers of which the test of a branch says that they are not below zero: `size - n`, where `n < size`."""

from __future__ import annotations

import ast
import re

from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Source

# What holds where the comparison does not.
_OTHERWISE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt
}  # fmt: skip


def as_asked(node: ast.expr) -> str:
    """The text of a number, in which a size is written in one way: `x.shape[0]` for `x.size(0)` and `len(x)`."""
    text = re.sub(r"\.size\((-?\d+)\)", r".shape[\1]", ast.unparse(node))
    return re.sub(r"\blen\(([\w.]+)\)", r"\1.shape[0]", text)


def asked_to_be_some(source: Source, node: ast.If, part: ast.AST) -> frozenset[str]:
    """The texts of the numbers that are not below zero at `part` of one of the arms of `node`, by what that asks."""
    around = [part, *source.ancestors(part)]
    arm = next((each for each in (node.body, node.orelse) if any(one in around for one in each)), None)
    if arm is None:
        return frozenset()
    test, holds = node.test, arm is node.body
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return frozenset()
    op, left, right = type(test.ops[0]), test.left, test.comparators[0]
    if not holds:
        op = _OTHERWISE.get(op, op)
    if op in (ast.Lt, ast.LtE):
        left, right = right, left
    elif op not in (ast.Gt, ast.GtE):
        return frozenset()
    # What is computed of other values by then says nothing.
    before = [each for each in arm if source.end(each) <= source.start(part)]
    inside = [each for each in arm if each in around and isinstance(each, (ast.For, ast.While))]
    if reads(test) & set(bound([*before, *inside])):
        return frozenset()
    if isinstance(right, ast.Constant) and type(right.value) is int and right.value in (0, 1):
        return frozenset({as_asked(left)})
    return frozenset({as_asked(ast.BinOp(left, ast.Sub(), right))})
