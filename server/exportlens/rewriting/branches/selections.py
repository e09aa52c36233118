"""torch.where in the place of a branch whose sides are both cheap, pure and elementwise on the same tensor.

Both sides are computed and one is taken for each element, which any target can run. It is offered beside torch.cond.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from exportlens.inference.values import Value
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_ELEMENTWISE = frozenset(
    {
        "abs",
        "neg",
        "ones_like",
        "zeros_like",
        "square",
        "exp",
        "tanh",
        "sigmoid",
        "relu",
        "sin",
        "cos",
        "erf",
        "clamp",
        "clone",
        "detach",
    }
)
# These give back the shape of their first argument as well.
_ALONG_A_DIM = frozenset({"softmax", "log_softmax", "clamp"})
_FUNCTIONS = ("torch.", "torch.nn.functional.")
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
# More than this is not cheap to compute in vain.
_MOST_OPERATIONS = 4


@dataclass(frozen=True, slots=True)
class _Side:
    """What one side is made of: its one tensor, how many operations, and whether it is a float whatever the tensor is
    (None: not known)."""

    tensor: str | None
    operations: int
    is_float: bool | None


def where_text(
    source: Source,
    node: ast.If | ast.IfExp,
    kinds: Kinds,
    torch: str,
    value: Value | None,
    refuse: Callable[[ast.expr, ast.expr, Kinds], None],
) -> str:
    """The whole text with torch.where for `node`, unless `refuse` raises of its sides. Raises Refused."""
    condition = Predicates(source, kinds, torch).read(node.test, value=value)
    if condition.form != "tensor" or condition.rank != 0:
        raise Refused("the condition is not known to be a tensor without dimensions")
    test = condition.text if condition.is_bool else f"({condition.text}).bool()"
    if isinstance(node, ast.IfExp):
        refuse(node.body, node.orelse, kinds)
        text = f"{torch}.where({test}, {source.of(node.body)}, {source.of(node.orelse)})"
        return replaced(source.text, [source.swap(node, text)])
    head, then, other, last = _sides(source, node)
    refuse(then, other, kinds)
    comments = source.comments_between(source.start(node), source.end(last))
    if comments and not source.begins_line(node):
        raise Refused("the branch has comments")
    above = "".join(f"{each}{source.newline}{source.indent_of(node)}" for each in comments)
    text = f"{above}{head}{torch}.where({test}, {source.of(then)}, {source.of(other)})"
    return replaced(source.text, [Replacement(source.start(node), source.end(last), text)])


def _sides(source: Source, node: ast.If) -> tuple[str, ast.expr, ast.expr, ast.stmt]:
    """How the line begins, the two expressions, and the last statement that the line stands for."""
    block, index = source.block_of(node)
    if source.text.startswith("elif", source.start(node)) or len(node.body) != 1 or len(node.orelse) > 1:
        raise Refused("the branch is more than one assignment")
    first, second = node.body[0], node.orelse[0] if node.orelse else None
    if isinstance(first, ast.Return) and first.value is not None:
        last = second or (block[index + 1] if index + 1 < len(block) else None)
        if isinstance(last, ast.Return) and last.value is not None:
            return "return ", first.value, last.value, last if second is None else node
    if isinstance(first, ast.Assign) and len(first.targets) == 1 and isinstance(first.targets[0], ast.Name):
        name = first.targets[0]
        if second is None:
            return f"{name.id} = ", first.value, ast.copy_location(ast.Name(name.id, ast.Load()), name), node
        if isinstance(second, ast.Assign) and [ast.unparse(each) for each in second.targets] == [name.id]:
            return f"{name.id} = ", first.value, second.value, node
    raise Refused("the branch is more than one assignment")


def refuse_unlike(then: ast.expr, other: ast.expr, kinds: Kinds) -> None:
    """Raise Refused unless both sides certainly have one shape and dtype."""
    sides = _sides_of_one(then, other, kinds)
    known = kinds.names[sides[0].tensor].dtype if sides[0].tensor in kinds.names else None
    alike = sides[0].is_float is not None and sides[0].is_float == sides[1].is_float
    if not alike and not (known or "").startswith("float"):
        raise Refused("the sides may differ in dtype")


def refuse_other_shapes(then: ast.expr, other: ast.expr, kinds: Kinds) -> None:
    """Raise Refused unless both sides certainly have one shape: data does not choose the dtype either."""
    _sides_of_one(then, other, kinds)


def _sides_of_one(then: ast.expr, other: ast.expr, kinds: Kinds) -> list[_Side]:
    """Both sides, made of one tensor and cheap. Raises Refused."""
    sides = [_side(each, kinds) for each in (then, other)]
    if sides[0].tensor is None or sides[0].tensor != sides[1].tensor:
        raise Refused("the sides are not made of the same tensor")
    if sum(side.operations for side in sides) > _MOST_OPERATIONS:
        raise Refused("the sides are not cheap")
    return sides


def _side(node: ast.expr, kinds: Kinds) -> _Side:
    if isinstance(node, ast.Name) and kinds.of(node).what == "tensor":
        return _Side(node.id, 0, False)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _Side(None, 0, isinstance(node.value, float))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _together([_side(node.operand, kinds)], False)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        return _together([_side(node.left, kinds), _side(node.right, kinds)], isinstance(node.op, ast.Div))
    if isinstance(node, ast.IfExp) and _is_option(node.test, kinds):
        one, two = _side(node.body, kinds), _side(node.orelse, kinds)
        if one.tensor == two.tensor:
            same = one.is_float if one.is_float == two.is_float else None
            return _Side(one.tensor, max(one.operations, two.operations), same)
    if isinstance(node, ast.Call) and all(isinstance(key.value, ast.Constant) for key in node.keywords):
        name = kinds.qualified(node.func) or ""
        parts = list(node.args)
        if not name and isinstance(node.func, ast.Attribute):
            name, parts = f"torch.{node.func.attr}", [node.func.value, *parts]
        last = name.rpartition(".")[2]
        if name.startswith(_FUNCTIONS) and last in _ALONG_A_DIM and parts:
            return _together([_side(parts[0], kinds)], None)
        if name.startswith(_FUNCTIONS) and last in _ELEMENTWISE and parts and not node.keywords:
            # Which of these make a float of an int is left open.
            return _together([_side(each, kinds) for each in parts], None)
    raise Refused(f"`{ast.unparse(node)}` is not known to be elementwise")


def _is_option(test: ast.expr, kinds: Kinds) -> bool:
    """Whether `test` certainly asks for settings alone."""
    names = [each for each in walk(test) if isinstance(each, ast.Name)]
    plain = all(
        isinstance(each, (ast.Name, ast.Constant, ast.Compare, ast.cmpop, ast.expr_context))
        for each in walk(test)
    )
    return plain and all(kinds.of(each).what in ("static", "number", "none") for each in names)


def _together(sides: list[_Side], is_float: bool | None) -> _Side:
    tensors = {side.tensor for side in sides} - {None}
    if len(tensors) > 1:
        raise Refused("a side is made of several tensors")
    parts = [is_float, *(side.is_float for side in sides)]
    known = True if True in parts else None if None in parts else False
    return _Side(next(iter(tensors), None), 1 + sum(side.operations for side in sides), known)
