"""Texts of expressions in brackets where what is put around them binds tighter."""

from __future__ import annotations

import ast

from exportlens.source.parsing import parse_python


def primary(text: str) -> str:
    """`text` so that `.attribute` may follow."""
    node = parse_python(f"({text})", mode="eval").body
    simple = isinstance(
        node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Tuple, ast.List, ast.Dict)
    )
    return text if simple and "\n" not in text else f"({text})"


def operand(text: str, word: str) -> str:
    """`text` as an operand of `and` or `or`."""
    node = parse_python(f"({text})", mode="eval").body
    loose = isinstance(node, (ast.Lambda, ast.IfExp, ast.NamedExpr)) or (
        isinstance(node, ast.BoolOp) and word == "and" and isinstance(node.op, ast.Or)
    )
    return f"({text})" if loose or "\n" in text else text
