"""Writes to what a mask picks, in a branch on whether it picks anything: without the branch they write nothing where it does not.

    if found.any():                 own = found[valid]
        own = found[valid]     ->   target[own] = 1.0
        target[own] = 1.0

This is done where the number of rows of what is written comes from data: torch.cond would give it another number, of which
tracing cannot say that it is the same.
"""

from __future__ import annotations

import ast

from exportlens.inference.values import Tensor
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds

# What neither calls anything nor asks for a value.
_PLAIN = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Slice, ast.Compare,
    ast.operator, ast.unaryop, ast.cmpop, ast.expr_context,
)  # fmt: skip


def written_in_any_case(source: Source, node: ast.If, kinds: Kinds) -> str | None:
    """The whole text without the question that the `if` statement `node` asks; None where its body may do anything else for a
    mask that picks nothing."""
    mask, function = _asked(node.test), source.enclosing_function(node)
    if mask is None or function is None or node.orelse or not source.begins_line(node):
        return None
    known = kinds.names.get(mask)
    if known is None or known.what != "tensor" or known.dtype != "bool":
        return None
    masks, nothing = {mask}, {mask}
    opened = False
    for statement in node.body:
        if not isinstance(statement, (ast.Assign, ast.AugAssign)) or not source.begins_line(statement):
            return None
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if len(targets) != 1 or not all(isinstance(each, _PLAIN) for each in ast.walk(statement.value)):
            return None
        target = targets[0]
        if isinstance(target, ast.Name) and isinstance(statement, ast.Assign):
            if not _is_picked(statement.value, masks, nothing):
                return None
            if isinstance(statement.value, ast.Subscript) and _name(statement.value.value) in masks:
                masks.add(target.id)
            nothing.add(target.id)
        elif isinstance(target, ast.Subscript) and _picks(target.slice, nothing):
            if not (isinstance(statement.value, ast.Constant) or _is_picked(statement.value, masks, nothing)):
                return None
            if not all(isinstance(each, _PLAIN) for each in ast.walk(target)):
                return None
            value = kinds.of(_loaded(target.value)).value
            opened = opened or (isinstance(value, Tensor) and value.unbacked)
        else:
            return None
    if not opened or set(bound(node.body)) & Liveness(function).live_after(node):
        return None
    begin, end = source.start(node), source.span([node])[1]
    indent = source.indent_of(node)
    text = source.block(node.body, indent).removeprefix(indent)
    return replaced(source.text, [Replacement(begin, end, text)])


def _asked(test: ast.expr) -> str | None:
    """The mask of `mask.any()`, `mask.sum() > 0` and `mask.sum().item() > 0`."""
    method = "any"
    if isinstance(test, ast.Compare):
        said = [(type(op), ast.unparse(each)) for op, each in zip(test.ops, test.comparators, strict=True)]
        if said not in ([(ast.Gt, "0")], [(ast.NotEq, "0")], [(ast.GtE, "1")]):
            return None
        test, method = test.left, "sum"
        if _is_method(test, "item"):
            assert isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute)
            test = test.func.value
    if not _is_method(test, method):
        return None
    assert isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute)
    return _name(test.func.value)


def _is_method(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and not node.args
        and not node.keywords
    )


def _is_picked(node: ast.expr, masks: set[str], nothing: set[str]) -> bool:
    """Whether `node` picks what has no elements, or has no True, where the mask has none; of `nothing` there are no elements
    then, or of `masks` none that is True."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(_is_picked(each, masks, nothing) for each in sides) and all(
            isinstance(each, ast.Constant) or _is_picked(each, masks, nothing) for each in sides
        )
    if not isinstance(node, ast.Subscript):
        return False
    if _name(node.value) in masks:
        return isinstance(node.slice, (ast.Name, ast.Slice))
    if _name(node.value) in nothing:
        # Not by a number: of nothing there is no first.
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return all(isinstance(each, ast.Slice) for each in parts)
    return _picks(node.slice, nothing)


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _picks(index: ast.expr, nothing: set[str]) -> bool:
    """Whether one of the indices is the mask, or was picked by it."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(each, ast.Name) and each.id in nothing for each in parts)


def _loaded(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body
