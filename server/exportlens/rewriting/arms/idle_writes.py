"""Writes to what a mask picks, in a branch on whether it picks anything: without the branch they write nothing where it does not.

    if found.any():                 own = found[valid]
        own = found[valid]     ->   target[own] = 1.0
        target[own] = 1.0

This is done where the number of rows of what is written comes from data: torch.cond would give it another number, of which
tracing cannot say that it is the same. And it is done where torch.cond does not take the branch, as where what is written shares
memory with what others read.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

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
# What makes one number of all elements, however many.
_OF_ALL = frozenset({"mean", "std", "sum", "var"})
_NUMBERS = frozenset(
    (home, name) for home in ("math", "numpy", "torch") for name in ("e", "inf", "nan", "pi")
)


def written_in_any_case(source: Source, node: ast.If, kinds: Kinds) -> str | None:
    """The whole text without the question that the `if` statement `node` asks, where data tell how many rows that has which is
    written; None where its body may do anything else for a mask that picks nothing."""
    idle = _idle(source, node, kinds)
    return idle.text() if idle is not None and idle.opened else None


def written_anyhow(source: Source, node: ast.If, kinds: Kinds) -> str | None:
    """The same, whatever is written."""
    idle = _idle(source, node, kinds)
    return None if idle is None else idle.text()


@dataclass(frozen=True)
class _Idle:
    """A branch that writes nothing where the mask that it asks for picks nothing."""

    source: Source
    node: ast.If
    # What is asked beside the mask: options, as `t > 0`.
    others: list[ast.expr]
    # Whether data tell how many rows that has which is written.
    opened: bool

    def text(self) -> str:
        source, node = self.source, self.node
        if self.others:
            test = " and ".join(map(source.of, self.others))
            return replaced(source.text, [source.swap(node.test, test)])
        begin, end = source.start(node), source.span([node])[1]
        indent = source.indent_of(node)
        text = source.block(node.body, indent).removeprefix(indent)
        return replaced(source.text, [Replacement(begin, end, text)])


def _idle(source: Source, node: ast.If, kinds: Kinds) -> _Idle | None:
    parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    masked = [each for each in parts if _asked(each, kinds) is not None]
    function = source.enclosing_function(node)
    if len(masked) != 1 or function is None or node.orelse or not source.begins_line(node):
        return None
    others = [each for each in parts if each is not masked[0]]
    if isinstance(node.test, ast.BoolOp) and not (
        isinstance(node.test.op, ast.And)
        and parts[-1] is masked[0]
        and not source.text.startswith("elif", source.start(node))
    ):
        return None
    mask = _asked(masked[0], kinds)
    assert mask is not None
    if not isinstance(mask, ast.Name) and len(node.body) > 1:
        # What is written first may change what it is computed of.
        return None
    known = kinds.of(mask)
    if known.what != "tensor" or known.dtype != "bool":
        return None
    masks, nothing = {ast.unparse(mask)}, {ast.unparse(mask)}
    opened = False
    for statement in node.body:
        if not isinstance(statement, (ast.Assign, ast.AugAssign)) or not source.begins_line(statement):
            return None
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if len(targets) != 1:
            return None
        target = targets[0]
        if isinstance(target, ast.Name) and isinstance(statement, ast.Assign):
            if not _is_plain(statement.value) or not _is_picked(statement.value, masks, nothing):
                return None
            if isinstance(statement.value, ast.Subscript) and _is_of(statement.value.value, masks):
                masks.add(target.id)
            nothing.add(target.id)
        elif isinstance(target, ast.Subscript) and _picks(target.slice, nothing):
            if not _fits_nothing(statement.value, masks, nothing, kinds):
                return None
            if not all(isinstance(each, _PLAIN) for each in ast.walk(target)):
                return None
            value = kinds.of(_loaded(target.value)).value
            opened = opened or (isinstance(value, Tensor) and value.unbacked)
        else:
            return None
    if set(bound(node.body)) & Liveness(function).live_after(node):
        return None
    return _Idle(source, node, others, opened)


def _is_plain(node: ast.expr) -> bool:
    return all(isinstance(each, _PLAIN) for each in ast.walk(node))


def _fits_nothing(node: ast.expr, masks: set[str], nothing: set[str], kinds: Kinds) -> bool:
    """Whether `node` can be written to nothing: it has no elements then, or is one number, with which nothing goes wrong."""
    if isinstance(node, ast.Call):
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr not in _OF_ALL or node.args or node.keywords:
            return False
        return _is_plain(func.value) and kinds.of(func.value).what == "tensor"
    if not _is_plain(node):
        return False
    if _is_picked(node, masks, nothing):
        return True
    if isinstance(node, ast.UnaryOp):
        return _fits_nothing(node.operand, masks, nothing, kinds)
    if isinstance(node, (ast.Name, ast.Attribute)):
        known = kinds.of(node)
        named = (kinds.qualified(node) or "").rpartition(".")
        return (
            known.what == "number" or (known.what == "tensor" and known.rank == 0) or named[::2] in _NUMBERS
        )
    return isinstance(node, ast.Constant)


def _asked(test: ast.expr, kinds: Kinds) -> ast.expr | None:
    """The mask of `mask.any()`, `mask.sum() > 0` and `mask.sum().item() > 0`, or of torch's functions of these names."""
    name = "any"
    if isinstance(test, ast.Compare):
        said = [(type(op), ast.unparse(each)) for op, each in zip(test.ops, test.comparators, strict=True)]
        if said not in ([(ast.Gt, "0")], [(ast.NotEq, "0")], [(ast.GtE, "1")]):
            return None
        test, name = test.left, "sum"
        if _is_method(test, "item"):
            assert isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute)
            test = test.func.value
    if not isinstance(test, ast.Call) or test.keywords:
        return None
    if kinds.qualified(test.func) == f"torch.{name}" and len(test.args) == 1:
        mask = test.args[0]
    elif _is_method(test, name) and isinstance(test.func, ast.Attribute):
        mask = test.func.value
    else:
        return None
    return mask if _is_plain(mask) else None


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
    if _is_of(node.value, masks):
        return isinstance(node.slice, (ast.Name, ast.Slice))
    if _is_of(node.value, nothing):
        # Not by a number: of nothing there is no first.
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return all(isinstance(each, ast.Slice) for each in parts)
    return _picks(node.slice, nothing)


def _is_of(node: ast.expr, known: set[str]) -> bool:
    """Whether `node` is one of those `known`, by their texts."""
    return ast.unparse(node) in known


def _picks(index: ast.expr, nothing: set[str]) -> bool:
    """Whether one of the indices is the mask, or was picked by it."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(_is_of(each, nothing) for each in parts)


def _loaded(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body
