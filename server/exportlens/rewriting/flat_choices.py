"""Numbers that nested branches choose: torch.where of them, one in the other, in the place of nested torch.cond.

torch.export 2.13 takes no torch.cond in an arm of another where gradients are switched later, as the lazy properties of a
distribution do. Numbers cost nothing to make in vain, so nothing has to run on one way only.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.names import every_name
from exportlens.rewriting.predicates import primary
from exportlens.rewriting.text import Replacement, Source, replaced

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
            if then is None or other is None or test is None:
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
    if len(arm.body) == 1 and isinstance(arm.body[0], ast.Return):
        value = arm.body[0].value
        return (source.of(value), False) if value is not None and _is_number(value, torch) else None
    inner = _chosen(source, arm.body, kinds, torch, known) if len(arm.body) == 3 else None
    if (
        inner is None
        or not isinstance(inner.statement, ast.Return)
        or inner.statement.value is not inner.call
    ):
        return None
    return inner.text, True


def _is_number(node: ast.expr, torch: str) -> bool:
    """Whether `node` makes a tensor without dimensions of a number: `torch.full((), n, dtype=torch.float64)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, first = node.func.attr, node.args[:1]
    plain = not any(isinstance(each, ast.Call) for arg in node.args for each in ast.walk(arg))
    is_scalar = name == "as_tensor" or (len(node.args) == 2 and ast.unparse(first[0]) == "()")
    return ast.unparse(node.func.value) == torch and name in _NUMBERS and is_scalar and plain
