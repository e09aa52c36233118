"""How many items a list has that a branch gives: torch.cond takes as many from both arms."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds


def refuse_other_lengths(
    name: str, arms: tuple[Sequence[ast.stmt], Sequence[ast.stmt]], ends: tuple[Kind | None, Kind | None]
) -> None:
    """Raise Refused where `name` is a list of which an arm takes a part, or that it makes longer; `ends` are what it is at the
    ends of the arms."""
    whats = {"none" if each is None else each.what for each in ends}
    if "container" not in whats or not whats <= {"container", "unknown"}:
        return
    if all(each is not None and each.items is not None for each in ends):
        return
    first, second = (_length(name, arm) for arm in arms)
    if first == second or "" in (first, second):
        return
    raise Refused(f"`{name}` may have more items on one side of the branch than on the other")


def refuse_other_returned_lengths(
    returns: Sequence[tuple[Sequence[ast.stmt], Sequence[ast.expr], Kinds]],
) -> None:
    """As `refuse_other_lengths`, for what the arms return: the statements of an arm, what it returns, and the kinds there."""
    for column in zip(*(given for _, given, _ in returns), strict=False):
        if not all(isinstance(each, ast.Name) for each in column) or len(set(map(ast.unparse, column))) > 1:
            continue
        name = ast.unparse(column[0])
        kinds = [now.of(each) for each, (_, _, now) in zip(column, returns, strict=True)]
        for (arm, _, _), kind in zip(returns[1:], kinds[1:], strict=True):
            refuse_other_lengths(name, (returns[0][0], arm), (kinds[0], kind))


def _length(name: str, arm: Sequence[ast.stmt]) -> str:
    """What tells how many items `name` has at the end of `arm`: the name of a list that has as many before the branch, or the text
    of what makes it; "" where that is not followed."""
    statements = [each for each in arm if name in bound(each)]
    if not statements:
        return name
    last = statements[-1]
    if len(statements) > 1 or not isinstance(last, ast.Assign) or len(last.targets) != 1:
        return ""
    if not isinstance(last.targets[0], ast.Name):
        return ""
    return _length_of(last.value, set(bound(arm)) - {name})


def _length_of(value: ast.expr, changed: set[str]) -> str:
    if isinstance(value, ast.Name):
        return "" if value.id in changed else value.id
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)) and len(value.generators) == 1:
        made = value.generators[0]
        return ast.unparse(value) if made.ifs else _length_of(made.iter, changed)
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("list", "tuple", "sorted", "reversed"):
        return _length_of(value.args[0], changed) if value.args else ""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        whole = value.slice.lower is None and value.slice.upper is None
        return _length_of(value.value, changed) if whole else ast.unparse(value)
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Mult)):
        return ast.unparse(value)
    return ""
