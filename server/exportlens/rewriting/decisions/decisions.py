"""Where code decides on tensor data: the statement or expression that a test is part of, and the first decision among statements."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import SEVERAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.leaving import left_loop
from exportlens.rewriting.memory.effects import is_kept_out, own_expressions, visit
from exportlens.source.walking import walk


def whole(source: Source, node: ast.AST, statement: ast.AST) -> ast.AST:
    """The statement or ternary whose test `node` is part of, or the outermost logical expression around
    it."""
    top = node
    while isinstance(source.parents.get(top), (ast.BoolOp, ast.UnaryOp)) or (
        isinstance(source.parents.get(top), ast.Call)
        and getattr(source.parents[top], "func", None) is not top
        and ast.unparse(source.parents[top].func) == "bool"  # type: ignore[attr-defined]
    ):
        top = source.parents[top]
    parent = source.parents.get(top)
    if isinstance(parent, ast.IfExp) and parent.test is top:
        # Ternaries in a ternary are rewritten together.
        while isinstance(outer := source.parents.get(parent), ast.IfExp) and outer.test is not parent:
            parent = outer
        return parent
    if isinstance(parent, (ast.If, ast.While, ast.Assert)) and parent.test is top:
        return parent
    if isinstance(statement, (ast.If, ast.While, ast.IfExp, ast.Assert)) and any(
        each is node for each in ast.walk(statement.test)
    ):
        return statement
    if isinstance(statement, ast.Match) and any(each is node for each in ast.walk(statement.subject)):
        return statement
    return top


def decided_loop(source: Source, node: ast.If, kinds: Kinds) -> ast.While | None:
    """The `while` around `node` that goes on by numbers which `node` chooses, or which are computed of those."""
    for loop in source.ancestors(node):
        if isinstance(loop, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        if not isinstance(loop, ast.While):
            continue
        chosen = set(bound([*node.body, *node.orelse]))
        assigned = [each for each in walk(loop) if isinstance(each, (ast.Assign, ast.AugAssign))]
        for _ in assigned:
            chosen |= {name for each in assigned if reads(each) & chosen for name in bound(each)}
        asked = chosen & reads(loop.test)
        if any(_is_number(kinds, name) for name in asked):
            return loop
    return None


def _is_number(kinds: Kinds, name: str) -> bool:
    kind = kinds.names.get(name)
    return kind is not None and kind.what in ("number", "size", "scalar")


def test_of(node: ast.AST) -> ast.expr | None:
    return node.test if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)) else None


def same_place(a: ast.AST | None, b: ast.AST) -> bool:
    return a is not None and (a.lineno, a.col_offset) == (b.lineno, b.col_offset)  # type: ignore[attr-defined]


def with_what_follows(source: Source, node: ast.stmt) -> ast.AST:
    """What a rewrite of `node` takes into the program: the loop that it leaves, and what runs behind it where it may return."""
    loop = left_loop(source, node)
    if "returns" not in exits([node]) and (loop is not None or exits([node]) == {"falls"}):
        return loop or node
    following: list[ast.stmt] = []
    node = node if loop is None else loop
    for each in (node, *source.ancestors(node)):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(each, ast.stmt):
            break
        block, index = source.block_of(each)
        following += block[index + 1 :]
    return ast.Module([node, *following], [])


def _refuse_tensor_or_number(test: ast.expr, kinds: Kinds) -> None:
    """Raise Refused where `test` compares what is a tensor on one way and a number of Python on another: whether it is a decision on
    tensor data is known by neither, and an arm that holds it would be traced with the tensor."""
    for each in ast.walk(test):
        if not isinstance(each, ast.Compare) or any(isinstance(op, (ast.Is, ast.IsNot)) for op in each.ops):
            continue
        for name in (one for one in ast.walk(each) if isinstance(one, ast.Name)):
            kind = kinds.names.get(name.id)
            whats = {item.what for item in kind.items or ()} if kind and kind.type == SEVERAL else set()
            if "tensor" in whats and whats & {"number", "size"}:
                raise Refused(f"`{name.id}` is a tensor on one way and a Python number on another")


def hazard_among(
    source: Source, statements: list[ast.stmt], kinds: Kinds, torch: str
) -> tuple[ast.AST, Kinds] | None:
    """The first decision on tensor data among `statements`, with the kinds just before it."""
    found: list[tuple[ast.AST, Kinds]] = []

    def see(node: ast.stmt, now: Kinds) -> None:
        if found:
            return
        if isinstance(node, ast.If) and is_kept_out(node):
            return
        predicates = Predicates(source, now, torch)
        if isinstance(node, (ast.If, ast.While, ast.Assert)) and predicates.from_data(node.test):
            found.append((node, now.copy()))
            return
        if isinstance(node, ast.Match) and predicates.from_data(node.subject):
            found.append((node, now.copy()))
            return
        if isinstance(node, (ast.If, ast.While)):
            _refuse_tensor_or_number(node.test, now)
        for each in own_expressions(node):
            if isinstance(each, ast.IfExp) and predicates.from_data(each.test):
                found.append((each, now.copy()))
                return
            if isinstance(each, ast.IfExp):
                _refuse_tensor_or_number(each.test, now)

    visit(statements, kinds, see)
    return found[0] if found else None
