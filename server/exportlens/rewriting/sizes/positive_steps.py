"""`x[::n]` whose step is a number from data -> a check before it that the step is above zero, which eager demands in any case.

Tracing asks for the sign of the step, and the check answers. Behind the first dimension strict tracing of torch 2.13 also asks whether
the step is one, which nothing tells.
"""

from __future__ import annotations

import ast
import itertools

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ItemRead
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.sizes.sizes import is_inner
from exportlens.source.walking import walk


def check_step(place: ItemRead, context: RewriteContext) -> Fix | Refusal:
    """The fix that writes `torch._check(n > 0)` before the statement that reads `x[::n]`."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            raise Refused("the part is read and written at once")
        step = _step(node)
        statement = source.enclosing_statement(node)
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
            raise Refused("the slice is a part of a compound statement")
        if not source.begins_line(statement) or is_inner(source, node, statement):
            raise Refused("the slice is not read whenever its statement runs")
        if any(isinstance(each, ast.Try) for each in source.ancestors(statement)):
            raise Refused("an error that a step of zero raises may be caught")
        if any(isinstance(each, (ast.NamedExpr, ast.Await)) for each in walk(statement)):
            raise Refused("the statement binds names before it reads the slice")
        text, replacements, lines = source.of(step), [], []
        if not _is_of_names(step):
            if not _is_read_out(step):
                raise Refused("the step is no number that has a name, and none that is read by `.item()`")
            taken = draft.taken(source.tree)
            name = next(each for n in itertools.count() if (each := f"step{n or ''}") not in taken)
            lines.append(f"{name} = {text}")
            replacements.append(source.swap(step, name))
            text = name
        lines.append(f"{draft.torch}._check({text} > 0)")
        start, between = source.start(statement), f"{source.newline}{source.indent_of(statement)}"
        replacements.append(Replacement(start, start, "".join(line + between for line in lines)))
        return draft.replace(f"Tell torch that `{text}` is above zero", replacements)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _step(node: ast.Subscript) -> ast.expr:
    """The step of the first dimension. Raises Refused where another has one."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    stepped = [each for each in parts if isinstance(each, ast.Slice) and each.step is not None]
    if len(stepped) != 1 or parts[0] is not stepped[0] or stepped[0].step is None:
        raise Refused("behind the first dimension torch asks whether a step from data is one")
    return stepped[0].step


def _is_of_names(step: ast.expr) -> bool:
    if isinstance(step, ast.BinOp):
        return _is_of_names(step.left) and _is_of_names(step.right)
    return isinstance(step, (ast.Name, ast.Constant))


def _is_read_out(step: ast.expr) -> bool:
    """Whether `step` is `t.item()` of a name, or a sum or product of that and numbers."""
    if isinstance(step, ast.BinOp):
        return all(_is_read_out(each) or _is_of_names(each) for each in (step.left, step.right))
    return (
        isinstance(step, ast.Call)
        and isinstance(step.func, ast.Attribute)
        and step.func.attr == "item"
        and isinstance(step.func.value, (ast.Name, ast.Attribute))
    )
