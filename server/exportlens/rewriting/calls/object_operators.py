"""Operators of objects as calls of the methods behind them: `a @ b` as `a.__matmul__(b)`."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import ObjectOperator
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.precedence import primary


def called_by_name(place: ObjectOperator, context: RewriteContext) -> Fix | Refusal:
    """The call of the method that Python would call for the operator."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not place.certain:
            raise Refused(
                f"`{place.method}` may give NotImplemented, upon which Python asks the other operand"
            )
        if isinstance(node, ast.UnaryOp):
            owner, other = node.operand, None
        elif isinstance(node, (ast.BinOp, ast.AugAssign)):
            left = node.left if isinstance(node, ast.BinOp) else node.target
            right = node.right if isinstance(node, ast.BinOp) else node.value
            reflected = place.method.startswith("__r") and place.method != "__rshift__"
            owner, other = (right, left) if reflected else (left, right)
            if reflected:
                _refuse_order(left, right)
        else:
            raise Refused("it is not written as an operator")
        _refuse_other_callers(draft, owner, place)
        given = "" if other is None else draft.source.of(other)
        call = f"{primary(draft.source.of(owner))}.{place.method}({given})"
        if isinstance(node, ast.AugAssign):
            _refuse_computed(node.target)
            call = f"{draft.source.of(node.target)} = {call}"
        return draft.replace(
            f"Call `{place.method}`",
            [draft.source.swap(node, call)],
            Applicability.UNSAFE if place.site.trail else Applicability.SAFE,
            uses_torch=False,
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _refuse_order(left: ast.expr, right: ast.expr) -> None:
    """Raise Refused where it may matter that the right operand is computed first."""
    fixed = any(isinstance(each, (ast.Name, ast.Constant)) for each in (left, right))
    binds = any(
        isinstance(each, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom))
        for one in (left, right)
        for each in ast.walk(one)
    )
    if binds or not (fixed or all(dotted(each) is not None for each in (left, right))):
        raise Refused("the right operand would be computed before the left one: give one of them a name")


def _refuse_computed(target: ast.expr) -> None:
    """Raise Refused where finding `target` twice may find two things."""
    index = target.slice if isinstance(target, ast.Subscript) else None
    owner = target.value if isinstance(target, ast.Subscript) else target
    if dotted(owner) is None or not (index is None or isinstance(index, (ast.Name, ast.Constant))):
        raise Refused("what is written is computed: give it a name")


def _refuse_other_callers(draft: Draft, owner: ast.expr, place: ObjectOperator) -> None:
    """Raise Refused where `owner` is an argument of a helper that several calls are written of: others may give it a number."""
    function = place.site.function
    if function is None or not place.site.trail or not isinstance(owner, ast.Name):
        return
    node = function.node
    names = [each.arg for each in arguments(node.args)]
    if owner.id not in names or isinstance(node, ast.Lambda):
        return
    if names.index(owner.id) == 0 and function.owner is not None:
        return
    chunks = [draft.chunk, *draft.others()]
    calls = [
        each
        for chunk in chunks
        for statement in chunk.body
        for each in ast.walk(statement)
        if isinstance(each, ast.Call)
        and str(dotted(each.func) or getattr(each.func, "attr", "")).rpartition(".")[2] == node.name
    ]
    if len(calls) > 1:
        raise Refused(f"`{node.name}` is called in several places, perhaps with `{owner.id}` of another kind")
