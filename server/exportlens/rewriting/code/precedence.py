"""Texts of expressions in brackets where what is put around them binds tighter."""

from __future__ import annotations

import ast

from exportlens.source.parsing import parse_python


def standing(text: str) -> str:
    """`text` of an expression so that it may stand anywhere: what goes over several lines by brackets around it gets its own."""
    if "\n" not in text:
        return text
    try:
        parse_python(text, mode="eval")
    except SyntaxError:
        return f"({text})"
    return text


def primary(text: str) -> str:
    """`text` so that `.attribute` may follow."""
    node = parse_python(f"({text})", mode="eval").body
    simple = isinstance(
        node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Tuple, ast.List, ast.Dict)
    )
    return standing(text) if simple else f"({text})"


def operand(text: str, word: str) -> str:
    """`text` as an operand of `word`: `and`, `or` or `not`."""
    node = parse_python(f"({text})", mode="eval").body
    loose = isinstance(node, (ast.Lambda, ast.IfExp, ast.NamedExpr)) or (
        isinstance(node, ast.BoolOp) and (word == "not" or (word == "and" and isinstance(node.op, ast.Or)))
    )
    return f"({text})" if loose else standing(text)


# How tightly operators bind (The Python Language Reference, 6.17); what is none of these needs no brackets anywhere.
(
    _LAMBDA,
    _CHOICE,
    _OR,
    _AND,
    _NOT,
    _COMPARE,
    _BIT_OR,
    _BIT_XOR,
    _BIT_AND,
    _SHIFT,
    _SUM,
    _TERM,
    _SIGN,
    _POWER,
    _ATOM,
) = range(1, 16)
_BINDING: dict[type[ast.AST], int] = {
    ast.NamedExpr: 0, ast.Yield: 0, ast.YieldFrom: 0, ast.Tuple: 0, ast.Lambda: _LAMBDA, ast.IfExp: _CHOICE,
    ast.Or: _OR, ast.And: _AND, ast.Not: _NOT, ast.Compare: _COMPARE, ast.BitOr: _BIT_OR, ast.BitXor: _BIT_XOR,
    ast.BitAnd: _BIT_AND, ast.LShift: _SHIFT, ast.RShift: _SHIFT, ast.Add: _SUM, ast.Sub: _SUM, ast.Mult: _TERM,
    ast.MatMult: _TERM, ast.Div: _TERM, ast.FloorDiv: _TERM, ast.Mod: _TERM, ast.UAdd: _SIGN, ast.USub: _SIGN,
    ast.Invert: _SIGN, ast.Pow: _POWER, ast.Await: _POWER,
}  # fmt: skip


def fitting(text: str, node: ast.AST, parent: ast.AST | None) -> str:
    """`text` in brackets where it would not hold together in the place of `node`, which stands below `parent` without brackets."""
    needed = 0 if parent is None else _needed(node, parent)
    if not needed:
        return text
    try:
        new = parse_python(f"({text}\n)", mode="eval").body
    except SyntaxError:
        return text
    # Brackets of its own are no part of an expression, but of a tuple.
    enclosed = (new.lineno, new.col_offset) != (1, 1) or isinstance(new, ast.GeneratorExp)
    if enclosed or (isinstance(new, ast.Tuple) and text.lstrip().startswith("(")):
        return text
    return f"({text})" if _binding(new) < needed else text


def _binding(node: ast.AST) -> int:
    kind = getattr(node, "op", node)
    return _BINDING.get(type(kind), _ATOM)


def _needed(node: ast.AST, parent: ast.AST) -> int:
    """How tightly the expression in the place of `node` has to bind."""
    if isinstance(parent, ast.BinOp):
        own = _binding(parent)
        if isinstance(parent.op, ast.Pow):
            return _SIGN if node is parent.right else _ATOM
        return own if node is parent.left else own + 1
    if isinstance(parent, ast.UnaryOp):
        return _binding(parent)
    if isinstance(parent, ast.BoolOp):
        return _binding(parent)
    if isinstance(parent, ast.Compare):
        return _COMPARE + 1
    if isinstance(parent, ast.IfExp):
        return _LAMBDA if node is parent.orelse else _OR
    if isinstance(parent, (ast.Attribute, ast.Await)):
        return _ATOM
    if isinstance(parent, ast.Subscript) and node is parent.value:
        return _ATOM
    if isinstance(parent, ast.Call) and node is parent.func:
        return _ATOM
    if isinstance(parent, ast.comprehension) and node is not parent.target:
        return _OR
    return _BIT_OR if isinstance(parent, ast.Starred) else 0
