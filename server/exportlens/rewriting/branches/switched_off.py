"""`t.requires_grad_(False)` behind a branch: what torch.cond gives has a gradient wherever an arm reads a parameter, even one
that is read without gradients, and of what was computed torch takes no gradient away (measured on torch 2.13)."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.text import Function, Source


def is_switched_off(source: Source, last: ast.stmt, name: str, function: Function) -> bool:
    """Whether a statement behind `last` takes the gradient of `name` away on every way, so that `name` had none: the tensor itself,
    detached, is the same. Raises Refused where that is done on some ways only."""
    statement: ast.stmt = last
    while True:
        block, index = source.block_of(statement)
        for each in block[index + 1 :]:
            if _switches_off(each, name):
                return True
            if any(_switches_off(inner, name) for inner in ast.walk(each)):
                raise Refused(
                    f"`{name}.requires_grad` is set on some ways behind the branch, and what torch.cond gives is no leaf"
                )
            if any(_asks(inner, name) for inner in ast.walk(each)):
                raise Refused(
                    f"`{name}.requires_grad` is asked behind the branch, and what torch.cond gives has a gradient wherever "
                    "one of the arms reads a parameter"
                )
            if name in bound([each]):
                return False
        owner = source.parents[statement]
        while not isinstance(owner, ast.stmt):
            owner = source.parents[owner]
        if owner is function or isinstance(owner, (ast.For, ast.While, ast.Try)):
            return False
        statement = owner


def refuse_switched_off(source: Source, node: ast.IfExp) -> None:
    """Raise Refused where the statement around `a if t else b` binds a name whose gradient is taken away behind it."""
    statement, function = source.enclosing_statement(node), source.enclosing_function(node)
    for name in bound([statement]) if function is not None else ():
        if function is not None and is_switched_off(source, statement, name, function):
            raise Refused(f"`{name}.requires_grad` is set behind it, and what torch.cond gives is no leaf")


def _switches_off(node: ast.AST, name: str) -> bool:
    """Whether `node` is `name.requires_grad_(False)` or `name.requires_grad = False`, a statement of its own."""
    if isinstance(node, ast.Assign):
        target, given = node.targets[0], node.value
        off = isinstance(target, ast.Attribute) and target.attr == "requires_grad" and _is(target.value, name)
        return off and isinstance(given, ast.Constant) and given.value is False
    call = node.value if isinstance(node, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return False
    given_ = [*call.args, *(each.value for each in call.keywords)]
    return (
        call.func.attr == "requires_grad_"
        and _is(call.func.value, name)
        and len(given_) == 1
        and isinstance(given_[0], ast.Constant)
        and given_[0].value is False
    )


def _asks(node: ast.AST, name: str) -> bool:
    """Whether `node` reads `name.requires_grad`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "requires_grad"
        and isinstance(node.ctx, ast.Load)
        and _is(node.value, name)
    )


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
