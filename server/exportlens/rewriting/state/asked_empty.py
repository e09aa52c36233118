"""State that is empty until a first call fills it: the question for that gets a branch of its own, which tracing decides.

if self.top.numel() == 0 or self.top < x.max():        if self.top.numel() == 0:
    self.top.data = x.max()                      ->        self.top.data = x.max()
                                                       elif self.top < x.max():
                                                           self.top.data = x.max()
What is empty gets another size there, which no `copy_` gives it, and no torch.cond takes from one of its ways.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source, replaced

ASK_APART = "Ask for what is empty in a branch of its own"
_COUNTS = frozenset({"numel", "nelement"})
_EMPTY = frozenset({("Eq", 0), ("LtE", 0), ("Lt", 1)})
_FILLED = frozenset({("NotEq", 0), ("Gt", 0), ("GtE", 1)})
# What reads alike on its own as behind `or`.
_OPERANDS = (ast.Compare, ast.Call, ast.Attribute, ast.Name, ast.Subscript, ast.UnaryOp)
# So many statements are written twice.
_MOST = 4


def asked_apart(source: Source, node: ast.If) -> str | None:
    """The whole text where `node` asks for the empty state, which it fills, in a branch of its own; None where it asks nothing
    of the kind, its statements are too many to stand twice, or the constructor does not fill it: a program of what is empty fills it
    in each call."""
    test = node.test
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.Or):
        return None
    first, rest = test.values[0], test.values[1:]
    asked, last = _asked(first), node.body[-1]
    if (
        asked is None
        or not asked[1]
        or not _binds(node, asked[0])
        or not _is_run_by_constructor(source, node)
    ):
        return None
    plain = all(isinstance(each, (ast.Assign, ast.AugAssign, ast.Expr)) for each in node.body)
    if not plain or len(node.body) > _MOST or not all(isinstance(each, _OPERANDS) for each in rest):
        return None
    if not all(source.begins_line(each) for each in node.body):
        return None
    other = " or ".join(source.of(each) for each in rest)
    indent = source.indent_of(node)
    second = f"\n{indent}elif {other}:\n{source.block(node.body, source.indent_of(last))}"
    _, at = source.span(node.body)
    return replaced(source.text, [source.swap(test, source.of(first)), Replacement(at, at, second)])


def _is_run_by_constructor(source: Source, node: ast.If) -> bool:
    """Whether the constructor calls the method around `node`."""
    function = source.enclosing_function(node)
    owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    if function is None or owner is None:
        return False
    return any(
        isinstance(each, ast.Call) and dotted(each.func) == f"self.{function.name}"
        for method in owner.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for each in ast.walk(method)
    )


def is_filled(source: Source, node: ast.AST, path: str) -> bool:
    """Whether `node` only runs where the tensor at `path` is not empty, or where it is and gets another size for that."""
    inner = node
    for outer in source.ancestors(node):
        if isinstance(outer, ast.If):
            asked = _asked(outer.test)
            if asked is not None and asked[0] == path:
                return inner in (outer.orelse if asked[1] else outer.body)
        inner = outer
    return False


def asks_whether_empty(function: ast.AST, path: str) -> bool:
    """Whether `function` asks if the tensor at `path` is empty."""
    return any(
        isinstance(each, (ast.Compare, ast.UnaryOp)) and (_asked(each) or ("",))[0] == path
        for each in ast.walk(function)
    )


def _asked(test: ast.expr) -> tuple[str, bool] | None:
    """The path of the tensor that `test` asks for elements, and whether it is true of one without; None where it asks else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        path = _counted(test.operand)
        return None if path is None else (path, True)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    path, number = _counted(test.left), test.comparators[0]
    if path is None or not isinstance(number, ast.Constant) or type(number.value) is not int:
        return None
    asked = (type(test.ops[0]).__name__, number.value)
    return (path, asked in _EMPTY) if asked in _EMPTY | _FILLED else None


def _counted(node: ast.expr) -> str | None:
    """The path of the tensor whose elements `node` counts, or its rows."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        first = node.value.attr == "shape" and ast.unparse(node.slice) == "0"
        return _path(node.value.value) if first else None
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    given = [ast.unparse(each) for each in node.args]
    if isinstance(node.func, ast.Name):
        return _path(node.args[0]) if node.func.id == "len" and len(given) == 1 else None
    if not isinstance(node.func, ast.Attribute):
        return None
    counts = (node.func.attr in _COUNTS and not given) or (node.func.attr == "size" and given == ["0"])
    return _path(node.func.value) if counts else None


def _path(node: ast.expr) -> str | None:
    """The path of the attribute `node`, without its `.data`; None where it is none."""
    path = (dotted(node) or "").removesuffix(".data")
    return path if "." in path else None


def _binds(node: ast.If, path: str) -> bool:
    """Whether a statement of `node` gives the state at `path` other content."""
    return any(
        isinstance(each, ast.Assign) and any(_path(target) == path for target in each.targets)
        for each in node.body
    )
