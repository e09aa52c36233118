"""The numbers that a file computes for its constants, of numbers and of other constants: `HALF = LIMIT / 2`, `STEP = int(math.sqrt(AREA))`."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from exportlens.inference.operators import BINARY
from exportlens.inference.values import Const, Static, Value

# Powers and shifts may give numbers without end.
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_CONSTANTS = {"math.pi": math.pi, "math.e": math.e, "math.tau": math.tau}
_INTS = frozenset(
    {"int", "len", "math.floor", "math.ceil", "math.trunc", "math.isqrt", "math.comb", "math.gcd"}
)
_FLOATS = frozenset({"float"} | {f"math.{each}" for each in
    ("sqrt", "log", "log2", "log10", "log1p", "exp", "expm1", "sin", "cos", "tan", "atan", "atan2", "tanh", "radians", "degrees", "hypot",
     "pow", "fabs")})  # fmt: skip


def computed(node: ast.expr, known: Mapping[str, Value]) -> Value | None:
    """The number that `node` gives, or its type alone; None where it is not known to be one."""
    if isinstance(node, ast.Constant):
        return Const(node.value) if type(node.value) in (int, float) else None
    if isinstance(node, ast.Name):
        return known[node.id] if node.id in known and _type(known[node.id]) else None
    if isinstance(node, ast.Attribute):
        number = _CONSTANTS.get(ast.unparse(node))
        return None if number is None else Const(number)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = computed(node.operand, known)
        return Const(-operand.value) if isinstance(operand, Const) else operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        return _of_both(node.op, computed(node.left, known), computed(node.right, known))
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        return Static("int") if name in _INTS else Static("float") if name in _FLOATS else None
    return None


def _of_both(op: ast.operator, left: Value | None, right: Value | None) -> Value | None:
    if left is None or right is None or not _type(left) or not _type(right):
        return None
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return Const(BINARY[type(op)](left.value, right.value))
        except (ArithmeticError, ValueError):
            return None
    return Static("float" if isinstance(op, ast.Div) or "float" in (_type(left), _type(right)) else "int")


def _type(value: Value) -> str:
    """`int` or `float` where `value` is such a number, else nothing."""
    if isinstance(value, Const):
        return type(value.value).__name__ if type(value.value) in (int, float) else ""
    return value.type if isinstance(value, Static) and value.type in ("int", "float") else ""
