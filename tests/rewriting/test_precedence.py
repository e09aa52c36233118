"""What takes an expression's place stays one expression, whatever operators stand around it."""

from __future__ import annotations

import ast

import pytest
from exportlens.rewriting.code.text import Source, replaced

AROUND = [
    "hole + 1", "1 + hole", "1 - hole", "hole * 2", "2 * hole", "hole @ w", "hole ** 2", "2 ** hole", "-hole", "not hole", "~hole",
    "hole > 1", "1 > hole", "1 < hole < 3", "hole != other", "hole in xs", "hole and y", "y or hole", "hole or y", "hole & y", "y | hole",
    "hole << 1", "hole.item()", "hole[0]", "hole(1)", "x[hole]", "f(hole)", "f(k=hole)", "f(*hole)", "a if hole else b",
    "hole if a else b", "a if b else hole", "[v for v in hole]", "[v for v in xs if hole]", "[hole for v in xs]", "(hole)", "(hole).item()",
    "-(hole)", "lambda: hole", "{hole: 1}", "(hole, 1)", "hole ^ y", "hole // 2", "2 % hole",
]  # fmt: skip
INSIDE = [
    "t", "t.sum()", "a + b", "a - b", "a * b", "a ** b", "-a", "not a", "a > b", "a < b < c", "a and b", "a or b", "a & b", "a | b",
    "a if b else c", "lambda: a", "(a > b)", "(a or b).item()", "[a, b]", "a.b[c](d)", "(m := a)", "a == b", "~a", "a << b", "(a) + (b)",
    "f(\n    a\n)",
]  # fmt: skip


class _Flat(ast.NodeTransformer):
    """`(a or b) or c` is `a or b or c`."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        self.generic_visit(node)
        values: list[ast.expr] = []
        for each in node.values:
            same = isinstance(each, ast.BoolOp) and type(each.op) is type(node.op)
            values += each.values if same and isinstance(each, ast.BoolOp) else [each]
        return ast.BoolOp(node.op, values)


def _meaning(text: str) -> str:
    return ast.dump(_Flat().visit(ast.parse(text)))


@pytest.mark.parametrize("around", AROUND)
def test_swapped_expression_holds_together(around: str) -> None:
    source = Source(f"x = {around}\n")
    (hole,) = [each for each in ast.walk(source.tree) if isinstance(each, ast.Name) and each.id == "hole"]
    for text in INSIDE:
        new = replaced(source.text, [source.swap(hole, text)])
        # The same with brackets that nobody has to think about.
        expected = f"x = {around.replace('hole', f'({text})')}\n"
        assert _meaning(new) == _meaning(expected), new


def test_no_brackets_where_none_are_needed() -> None:
    source = Source("x = hole + y\n")
    (hole,) = [each for each in ast.walk(source.tree) if isinstance(each, ast.Name) and each.id == "hole"]
    texts = [
        replaced(source.text, [source.swap(hole, each)]) for each in ("a * b", "a + b", "(a > b)", "f(a)")
    ]
    assert texts == ["x = a * b + y\n", "x = a + b + y\n", "x = (a > b) + y\n", "x = f(a) + y\n"]
