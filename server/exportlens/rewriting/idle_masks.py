"""Masks that are dropped where they mask nothing: `if not padding_mask.any(): padding_mask = None`.

Which it is hangs on data, and a branch gives no None. The mask is kept: what it does where nothing is masked is what None stands for.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.draft import Refused
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.names import dotted
from exportlens.rewriting.text import Replacement, Source, replaced
from exportlens.source.walking import walk

KEEP_MASK = "Keep the mask, which masks nothing there"


def kept_text(source: Source, node: ast.If | ast.IfExp, kinds: Kinds) -> str | None:
    """The text without the branch that gives None in the place of a mask without effect; None where `node` is no such branch.
    Raises Refused where comments would be lost.
    """
    if isinstance(node, ast.IfExp):
        return _kept_by_ternary(source, node, kinds)
    if node.orelse or len(node.body) != 1:
        return None
    only = node.body[0]
    if not (
        isinstance(only, ast.Assign)
        and len(only.targets) == 1
        and isinstance(only.targets[0], ast.Name)
        and _is_none(only.value)
    ):
        return None
    name = only.targets[0].id
    tests = (
        node.test.values
        if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        else [node.test]
    )
    asked = [each for each in tests if not _is_none_test(each, name)]
    if len(asked) != 1 or not _masks_nothing(asked[0], name, kinds) or not _only_masks(source, node, name):
        return None
    start, end = source.span([node])
    if source.text.startswith("elif", source.start(node)) or source.comments_between(source.start(node), end):
        raise Refused("the branch has comments")
    block, _ = source.block_of(node)
    if len(block) == 1:
        return replaced(source.text, [Replacement(start, end, f"{source.indent_of(node)}pass")])
    following = source.text[end:]
    return source.text[:start] + following[len(following) - len(following.lstrip("\r\n")) :]


def _kept_by_ternary(source: Source, node: ast.IfExp, kinds: Kinds) -> str | None:
    test, kept = node.test, node.orelse
    if _is_none(node.orelse):
        is_negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        test = getattr(test, "operand", test) if is_negated else ast.UnaryOp(ast.Not(), test)
        kept = node.body
    elif not _is_none(node.body):
        return None
    name = dotted(kept)
    if name is None or not _masks_nothing(test, name, kinds):
        return None
    bound = source.parents[node]
    target = bound.targets[0] if isinstance(bound, ast.Assign) else None
    if not isinstance(bound, ast.Return) and not (
        isinstance(target, ast.Name) and _only_masks(source, node, target.id)
    ):
        return None
    return replaced(source.text, [source.swap(node, name)])


def _only_masks(source: Source, node: ast.AST, name: str) -> bool:
    """Whether the function does nothing where `name` is a mask but to fill by it, or to make other masks of it."""
    function = source.enclosing_function(node)
    for each in walk(function) if function is not None else ():
        if isinstance(each, ast.IfExp) and _asks_for_none(each.test, name):
            bound = source.parents[each]
            if not isinstance(bound, ast.Assign) or not _fills(bound, name):
                return False
        if isinstance(each, ast.If) and each is not node and _asks_for_none(each.test, name):
            is_given = isinstance(each.test, ast.Compare) and isinstance(each.test.ops[0], ast.IsNot)
            if not is_given or each.orelse or not all(_fills(one, name) for one in each.body):
                return False
    return True


def _asks_for_none(test: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Compare) and dotted(each.left) == name for each in walk(test))


def _fills(statement: ast.stmt, name: str) -> bool:
    """Whether `statement` fills by the mask `name`: `x = x.masked_fill(mask, 0)`; or binds another mask."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = dotted(statement.targets[0]) or ""
    if "mask" in target.lower():
        return True
    value = statement.value
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "masked_fill"
        and dotted(value.func.value) == target
        and any(isinstance(each, ast.Name) and each.id == name for each in walk(value.args[0]))
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_none_test(test: ast.expr, name: str) -> bool:
    return ast.unparse(test) == f"{name} is not None"


def _masks_nothing(test: ast.expr, name: str, kinds: Kinds) -> bool:
    """Whether `test` asks that `name`, True where something is padding, is False everywhere, or that, True where something counts, it
    is True everywhere. Which of the two a mask is, is in its name."""
    is_padding = "pad" in name.lower()
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_padding and _asks(test.operand, "any", name, kinds)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return is_padding and ast.unparse(test.comparators[0]) == "0" and _asks(test.left, "sum", name, kinds)
    return not is_padding and "mask" in name.lower() and _asks(test, "all", name, kinds)


def _asks(node: ast.expr, question: str, name: str, kinds: Kinds) -> bool:
    """Whether `node` is `name.any()` or `torch.any(name)`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if kinds.qualified(node.func) == f"torch.{question}":
        return len(node.args) == 1 and dotted(node.args[0]) == name
    func = node.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr == question
        and not node.args
        and dotted(func.value) == name
    )
