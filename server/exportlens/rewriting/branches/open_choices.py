"""Tensors of which data tells a size behind the first one, as `torch.zeros(3, n)` and grids of `torch.arange(n)`.

torch.cond and torch.export 2.13 give none of these: tracing asks whether the size is 1, for the strides of the result. A tensor
whose first size alone comes from data is given, and what an operator chooses has its strides from what it chooses among.

    grid = grid / (n - 1) if n > 1 else grid  ->  grid = grid / torch.where(n > 1, n - 1, 1)
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Function, Source, replaced
from exportlens.rewriting.decisions.conditions import Condition
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.sizes.open_shapes import LATER, OpenShapes

# Of these the factor or divisor 1 gives the same number, and 0 is the summand of which that is so for -0.0 as well.
_NEUTRAL: dict[type[ast.operator], str] = {ast.Div: "1", ast.Mult: "1", ast.Sub: "0"}

_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def refuse_open(name: str, values: list[ast.expr], kinds: Kinds, source: Source, function: Function) -> None:
    """Raise Refused where one of `values`, which torch.cond would give as `name`, has such a size."""
    shapes = OpenShapes(source, kinds, function)
    if any(shapes.opened(each) == LATER for each in values):
        raise Refused(
            f"{name} has a size from data behind its first, which torch.cond does not give: compute both sides and "
            "choose by torch.where, or pad to a size that is known"
        )


def open_choice(source: Source, node: ast.IfExp, kinds: Kinds, torch: str) -> str | None:
    """The text in the place of `node`, which chooses among tensors that torch.cond does not give; None where it would give them.
    Raises Refused."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    shapes = OpenShapes(source, kinds, function)
    if not any(shapes.opened(each) == LATER for each in (node.body, node.orelse)):
        return None
    condition = Predicates(source, kinds, torch).read(node.test)
    operand = _operand_chosen(source, node.test, node.body, node.orelse, kinds, condition, torch)
    if operand is not None:
        return operand
    if all(shapes.is_harmless(each) for each in (node.body, node.orelse)):
        return f"{torch}.where({_mask(condition)}, {source.of(node.body)}, {source.of(node.orelse)})"
    refuse_open("the result", [node.body, node.orelse], kinds, source, function)
    return None


def open_choice_of(source: Source, node: ast.If, kinds: Kinds, torch: str) -> str | None:
    """The whole text where the `if` statement `node`, which binds such a tensor and does nothing else, is one assignment; None
    where it is not of that form."""
    function = source.enclosing_function(node)
    if function is None or not source.begins_line(node) or len(node.body) != 1 or len(node.orelse) > 1:
        return None
    if source.comments_between(source.start(node), source.end(node)):
        return None
    [body], other = node.body, node.orelse[0] if node.orelse else None
    name, value = _bound(source, body)
    if name is None or value is None or (other is not None and _bound(source, other)[0] != name):
        return None
    otherwise = ast.Name(name, ast.Load()) if other is None else _bound(source, other)[1]
    shapes = OpenShapes(source, kinds, function)
    if otherwise is None or not any(shapes.opened(each) == LATER for each in (value, otherwise)):
        return None
    condition = Predicates(source, kinds, torch).read(node.test)
    texts = [name if each is otherwise and other is None else source.of(each) for each in (value, otherwise)]
    text = _operand_chosen(source, node.test, value, otherwise, kinds, condition, torch, texts)
    if text is None:
        if not all(shapes.is_harmless(each) for each in (value, otherwise)):
            return None
        text = f"{torch}.where({_mask(condition)}, {texts[0]}, {texts[1]})"
    return replaced(source.text, [source.swap(node, f"{name} = {text}")])


def _bound(source: Source, node: ast.stmt) -> tuple[str | None, ast.expr | None]:
    """The name that `node` binds and what to, where it is one assignment of one name."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    return None, None


def _operand_chosen(
    source: Source,
    test: ast.expr,
    then: ast.expr,
    other: ast.expr,
    kinds: Kinds,
    condition: Condition,
    torch: str,
    texts: list[str] | None = None,
) -> str | None:
    """`x / n` on one side and `x` on the other as `x` divided by what is chosen; None where the sides are not so."""
    then_text, other_text = texts or [source.of(then), source.of(other)]
    for whole, plain, is_then in ((then, other_text, True), (other, then_text, False)):
        if not isinstance(whole, ast.BinOp) or type(whole.op) not in _NEUTRAL:
            continue
        known = kinds.of(whole.left)
        is_float = known.what == "tensor" and (known.dtype or "").startswith(("float", "bfloat"))
        if (
            not isinstance(whole.left, _ATOMS)
            or source.of(whole.left) != plain
            or not is_float
            or not _is_one_number(whole.right, test, kinds)
        ):
            continue
        neutral, number = _NEUTRAL[type(whole.op)], source.of(whole.right)
        chosen = (number, neutral) if is_then else (neutral, number)
        sign = source.text[source.end(whole.left) : source.start(whole.right)].strip(" (")
        return f"{plain} {sign} {torch}.where({_mask(condition)}, {chosen[0]}, {chosen[1]})"
    return None


def _is_one_number(node: ast.expr, test: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` computes one number, of numbers and of tensors of one element, as those are whose truth `test` asks."""
    asked = {dotted(each) for each in ast.walk(test) if isinstance(each, (ast.Name, ast.Attribute))}
    single = isinstance(test, ast.Compare)
    for each in ast.walk(node):
        if isinstance(
            each, (ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop, ast.expr_context)
        ):
            continue
        if not isinstance(each, ast.Name):
            return False
        kind = kinds.of(each)
        if kind.what in ("number", "size", "scalar") or (kind.what == "tensor" and kind.rank == 0):
            continue
        if not (single and kind.what == "tensor" and each.id in asked):
            return False
    return kinds.of(node).what == "tensor"


def _mask(condition: Condition) -> str:
    """`condition` as torch.where takes it. Raises Refused."""
    if condition.form != "tensor" or not condition.is_bool:
        raise Refused(f"`{condition.text}` is no tensor of bools, as torch.where takes it")
    return condition.text
