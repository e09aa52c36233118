"""Numbers that nested branches choose: torch.where of them, one in the other, in the place of nested torch.cond.

torch.export 2.13 takes no torch.cond in an arm of another where gradients are switched later, as the lazy properties of a
distribution do. Numbers cost nothing to make in vain, so nothing has to run on one way only.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.names import every_name
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds

_NUMBERS = ("full", "as_tensor")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One torch.cond behind the functions of its two arms: the statements from the first function to the one that holds it, and
    the text that chooses."""

    first: ast.stmt
    statement: ast.stmt
    call: ast.Call
    text: str
    is_nested: bool


def numbers_chosen_flat(before: Source, text: str, kinds: Kinds, torch: str) -> str:
    """`text`, in which torch.where chooses what nested torch.cond chose among numbers, where the functions of all arms are
    not in `before`; `kinds` are those at the outer branch."""
    source = Source(text)
    known = every_name(before.tree)
    for function in ast.walk(source.tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or function.name not in known:
            continue
        for owner in ast.walk(function):
            for block in (getattr(owner, "body", None), getattr(owner, "orelse", None)):
                chosen = _chosen(source, block, kinds, torch, known) if isinstance(block, list) else None
                if chosen is not None and chosen.is_nested:
                    swapped = source.of(chosen.statement, [source.swap(chosen.call, chosen.text)])
                    span = Replacement(source.start(chosen.first), source.end(chosen.statement), swapped)
                    return numbers_chosen_flat(before, replaced(text, [span]), kinds, torch)
    return text


def _chosen(
    source: Source, block: list[ast.stmt], kinds: Kinds, torch: str, known: set[str]
) -> _Chosen | None:
    """What the first two functions of `block` that stand before their own torch.cond choose."""
    for first, second, statement in zip(block, block[1:], block[2:], strict=False):
        if not (isinstance(first, ast.FunctionDef) and isinstance(second, ast.FunctionDef)):
            continue
        if not isinstance(statement, (ast.Assign, ast.Return)) or {first.name, second.name} & known:
            continue
        for call in ast.walk(statement):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != f"{torch}.cond":
                continue
            if [ast.unparse(each) for each in call.args[1:]] != [first.name, second.name, "()"]:
                continue
            sides = [_side(source, each, kinds, torch, known) for each in (first, second)]
            then, other = sides
            test = _test(source, call.args[0], kinds)
            if then is None or other is None or test is None or f"{torch}.full(" not in then[0] + other[0]:
                # Of tensors alone torch.where would make one shape.
                continue
            text = f"{torch}.where({test}, {then[0]}, {other[0]})"
            return _Chosen(first, statement, call, text, then[1] or other[1] or _is_arm(source, first, known))
    return None


def _test(source: Source, node: ast.expr, kinds: Kinds) -> str | None:
    """`node` as a bool tensor without dimensions, None where that is not known: torch.cond takes one of one element, too."""
    kind, text = kinds.of(node), source.of(node)
    if kind.what != "tensor" or kind.dtype != "bool":
        return None
    return text if kind.rank == 0 else f"{primary(text)}.reshape(())"


def _is_arm(source: Source, node: ast.stmt, known: set[str]) -> bool:
    """Whether `node` stands in the arm of another branch that is new, too."""
    outer = source.enclosing_function(node)
    return isinstance(outer, ast.FunctionDef) and outer.name not in known


def _side(
    source: Source, arm: ast.FunctionDef, kinds: Kinds, torch: str, known: set[str]
) -> tuple[str, bool] | None:
    """The number that `arm` gives, as a tensor, and whether a branch in it chooses it; None where it does anything else."""
    if arm.args.args or arm.args.defaults or source.comments_between(source.start(arm), source.end(arm)):
        return None
    *first, last = arm.body
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    if not first:
        text = _number(source, last.value, None, "", torch)
        return None if text is None else (text, False)
    if len(first) == 1 and isinstance(first[0], ast.Assign) and isinstance(first[0].targets[0], ast.Name):
        text = _number(source, last.value, first[0].targets[0].id, source.of(first[0].value), torch)
        return None if text is None or not _is_plain(first[0].value) else (text, False)
    inner = _chosen(source, arm.body[:3], kinds, torch, known)
    if inner is None:
        return None
    if inner.statement is last and last.value is inner.call:
        return inner.text, True
    statement = inner.statement
    if len(arm.body) != 4 or not isinstance(statement, ast.Assign) or statement.value is not inner.call:
        return None
    # What the inner branch chose is a tensor by now, whatever is made of it.
    name = ast.unparse(statement.targets[0])
    return (inner.text, True) if _number(source, last.value, name, name, torch) is not None else None


def _is_plain(node: ast.expr) -> bool:
    """Whether `node` computes nothing that is worth a branch, and calls nothing."""
    plain = (
        ast.Name,
        ast.Attribute,
        ast.Constant,
        ast.BinOp,
        ast.UnaryOp,
        ast.operator,
        ast.unaryop,
        ast.expr_context,
    )
    return all(isinstance(each, plain) for each in ast.walk(node))


def _number(source: Source, node: ast.expr, name: str | None, value: str, torch: str) -> str | None:
    """The text of `node`, a tensor without dimensions that is made of a number or copied, with `value` for `name`; None where it is
    anything else: `torch.full((), n, dtype=torch.float64)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner, called = node.func.value, node.func.attr
    if called == "clone" and not node.args and not node.keywords:
        if isinstance(owner, ast.Call):
            return _number(source, owner, name, value, torch)
        # A tensor is copied for torch.cond alone.
        return value if name is not None and ast.unparse(owner) == name else None
    if ast.unparse(owner) != torch or called not in _NUMBERS or not node.args:
        return None
    number = node.args[-1]
    if called == "full" and (len(node.args) != 2 or ast.unparse(node.args[0]) != "()"):
        return None
    if not _is_plain(number) or (name is not None and ast.unparse(number) != name):
        return None
    return source.of(node, [source.swap(number, value)]) if name is not None else source.of(node)
