"""A branch that ends a block without gradients and binds names to constants alone: it stands behind the block, where the names are used.

    with torch.no_grad():                      with torch.no_grad():
        share = y.softmax(-1).max()                share = y.softmax(-1).max()
        if share > 0.9:                ->      if share > 0.9:
            mode = "sure"                          mode = "sure"
        else:                                  else:
            mode = "open"                          mode = "open"
    return self.heads[mode](y)                 return self.heads[mode](y)

torch.cond gives no such constant, and takes in what uses it. A test gives the same where gradients are recorded.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.arms.gradients import is_no_grad
from exportlens.rewriting.branches.left_contexts import opening
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source, replaced

CHOOSE_BEHIND = "Choose behind the `with` block"


def chosen_behind(source: Source, node: ast.AST) -> str | None:
    """The whole text with `node`, an `if` that chooses what is no number, and what ends the block after it behind that; None where it
    is no such branch."""
    owner = source.parents.get(node)
    if not isinstance(node, ast.If) or not isinstance(owner, ast.With) or not _keeps_values(owner):
        return None
    block, index = source.block_of(node)
    before, tail = block[:index], block[index:]
    if not _only_binds(tail) or not any(map(_binds_object, ast.walk(node))):
        return None
    if not all(map(source.begins_line, (owner, *block))) or source.text.startswith(
        "elif", source.start(node)
    ):
        return None
    outer, inner, nl = source.indent_of(owner), source.indent_of(node), source.newline
    last = source.span(before)[1] if before else source.end(owner.items[-1].context_expr)
    notes = [outer + each for each in source.comments_between(last, source.start(node))]
    lines = [opening(source, owner), source.block(before, inner)] if before else []
    lines += [*notes, source.block(tail, outer)]
    text = nl.join(lines).removeprefix(outer)
    return replaced(source.text, [Replacement(source.start(owner), source.span([owner])[1], text)])


def _keeps_values(owner: ast.With) -> bool:
    """Whether what is computed in the block is the same outside of it, and entering it does nothing else."""
    return all(
        item.optional_vars is None
        and (is_no_grad(item.context_expr) or _name(item.context_expr).endswith("record_function"))
        for item in owner.items
    )


def _name(context: ast.expr) -> str:
    return (dotted(context.func) or "") if isinstance(context, ast.Call) else ""


def _only_binds(statements: Sequence[ast.stmt]) -> bool:
    """Whether `statements` do nothing but bind names to constants and other names, on some of their ways."""
    return all(
        isinstance(each, ast.Pass)
        or (
            isinstance(each, ast.If)
            and not _asks_modes(each.test)
            and _only_binds(each.body)
            and _only_binds(each.orelse)
        )
        or (
            isinstance(each, ast.Assign)
            and isinstance(each.value, (ast.Constant, ast.Name))
            and all(isinstance(target, ast.Name) for target in each.targets)
        )
        for each in statements
    )


def _asks_modes(test: ast.expr) -> bool:
    """Whether a test may ask whether gradients are recorded: methods of the model may."""
    return any(
        (isinstance(each, ast.Call) and (dotted(each.func) or "").startswith("self."))
        or (isinstance(each, ast.Attribute) and "grad" in each.attr)
        for each in ast.walk(test)
    )


def _binds_object(node: ast.AST) -> bool:
    """Whether `node` binds a name to a text or None, which no tensor is."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and (node.value.value is None or isinstance(node.value.value, str))
    )
