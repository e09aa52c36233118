"""Questions whether state has begun, `self.state is None` and `hasattr(self, "state")`, and where it certainly has."""

from __future__ import annotations

import ast
from collections.abc import Callable

from exportlens.rewriting.code.names import assigned_pairs, dotted, is_none
from exportlens.rewriting.code.text import Function, Source


def asks_for_it(node: ast.AST, attr: str) -> bool:
    """Whether `node` is `hasattr(self, attr)`."""
    return _names_self(node, "hasattr", attr) and isinstance(node, ast.Call) and len(node.args) == 2


def names_it(node: ast.AST, attr: str) -> list[ast.expr]:
    """The name of the attribute in `hasattr(self, attr)` and `getattr(self, attr, None)`."""
    if asks_for_it(node, attr) or _or_none(node, attr):
        assert isinstance(node, ast.Call)
        return [node.args[1]]
    return []


def asks_for_none(node: ast.AST, path: str) -> bool | None:
    """Whether `node` comes out true where the state has begun, or (False) where it is None; None where it asks something else."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    right = node.comparators[0]
    of_it = dotted(node.left) == path or _or_none(node.left, path.removeprefix("self."))
    if not of_it or not (isinstance(right, ast.Constant) and right.value is None):
        return None
    if isinstance(node.ops[0], (ast.Is, ast.Eq)):
        return False
    return True if isinstance(node.ops[0], (ast.IsNot, ast.NotEq)) else None


def reads_it(node: ast.AST, path: str) -> bool:
    """Whether `node` is a read of the attribute, also by `getattr(self, attr, None)`."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and dotted(node) == path
    return _or_none(node, path.removeprefix("self."))


# What a test that asks for another attribute tells of the state, as `_of_test` does.
Tells = Callable[[ast.expr], bool | None]


def _silent(test: ast.expr) -> bool | None:
    return None


def is_set_before(
    source: Source, function: Function, node: ast.AST, path: str, tells: Tells = _silent
) -> bool:
    """Whether the state has certainly begun where `node` of `function` is reached: a statement above it in its block, or in
    one around, binds it, or does so where it is None; or it is asked for around `node`."""
    inner: ast.AST = node
    for outer in source.ancestors(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(outer, name, None)
            if isinstance(block, list) and inner in block:
                for each in reversed(block[: block.index(inner)]):
                    if _begins(each, path, tells):
                        return True
                    if _may_end(each, path):
                        return False
        if outer is function:
            return False
        asked = _asked(outer, path, tells) if isinstance(outer, ast.If) else None
        if (
            isinstance(outer, ast.If)
            and asked is not None
            and inner in (outer.body if asked else outer.orelse)
        ):
            return True
        if isinstance(outer, (ast.For, ast.While, ast.If)) and _may_end(outer, path):
            return False
        inner = outer
    return False


def _asked(statement: ast.If, path: str, tells: Tells) -> bool | None:
    begun = _of_test(statement.test, path)
    return tells(statement.test) if begun is None else begun


def _begins(statement: ast.stmt, path: str, tells: Tells) -> bool:
    if _is_turned(statement, path, True):
        return True
    if isinstance(statement, ast.Assign):
        return any(
            dotted(part) == path and not is_none(value)
            for each, value in assigned_pairs(statement)
            for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])
        )
    if not isinstance(statement, ast.If):
        return False
    if _may_end(statement, path):
        return False
    body, orelse = (
        any(_begins(each, path, tells) for each in arm) for arm in (statement.body, statement.orelse)
    )
    begun = _asked(statement, path, tells)
    return body and orelse if begun is None else orelse if begun else body


def _of_test(test: ast.expr, path: str) -> bool | None:
    """Whether the None leads to the `orelse` of `test` (True) or to its body (False); None where it may lead to both."""

    def asked(part: ast.expr) -> bool | None:
        return True if asks_for_it(part, path.removeprefix("self.")) else asks_for_none(part, path)

    return told_by(test, asked)


def told_by(test: ast.expr, asked: Tells) -> bool | None:
    """What `test` tells where `asked` says it of the questions that are in it, behind `not`, `and` and `or`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = told_by(test.operand, asked)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        wanted = not isinstance(test.op, ast.Or)
        return wanted if any(told_by(each, asked) is wanted for each in test.values) else None
    return asked(test)


def _may_end(statement: ast.stmt, path: str) -> bool:
    """Whether `statement` sets the state to None, deletes it, or turns its flag off."""
    return any(_is_turned(each, path, False) for each in ast.walk(statement)) or any(
        isinstance(each, ast.Attribute)
        and dotted(each) == path
        and (isinstance(each.ctx, ast.Del) or _is_ended_by(statement, each))
        for each in ast.walk(statement)
    )


def _is_turned(node: ast.AST, path: str, on: bool) -> bool:
    """Whether `node` is `path.fill_(True)`, or that of False where it is not `on`: the flag of what has begun."""
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and dotted(call.func) == f"{path}.fill_"
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Constant)
        and call.args[0].value is on
    )


def _is_ended_by(statement: ast.stmt, target: ast.Attribute) -> bool:
    return any(
        isinstance(each, ast.Assign) and target in ast.walk(each) and target not in ast.walk(each.value)
        for each in ast.walk(statement)
        if isinstance(each, ast.Assign) and any(is_none(one) for one in ast.walk(each.value))
    )


def _or_none(node: ast.AST, attr: str) -> bool:
    """Whether `node` is `getattr(self, attr, None)`."""
    return (
        _names_self(node, "getattr", attr)
        and isinstance(node, ast.Call)
        and len(node.args) == 3
        and is_none(node.args[2])
    )


def _names_self(node: ast.AST, function: str, attr: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and dotted(node.func) == function
        and len(node.args) > 1
        and dotted(node.args[0]) == "self"
        and isinstance(node.args[1], ast.Constant)
        and node.args[1].value == attr
    )
