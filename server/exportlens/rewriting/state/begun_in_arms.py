"""Attributes that a constructor begins in the arms of an `if`, as a tensor in each."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.memory.effects import kinds_before

# What only tensors and Modules have: a number given instead would raise an AttributeError already.
_OF_TENSORS = frozenset({"to", "cpu", "cuda", "clone", "detach", "float", "double", "half"})


def set_in_one_arm_each(
    draft: Draft, constructor: ast.FunctionDef, begins: Sequence[ast.Assign | ast.AnnAssign], attribute: str
) -> bool:
    """Whether each of `begins` stands in an arm of its own of one `if` of the body of `constructor`, and sets the attribute alone,
    to what is a tensor: one of them runs at most."""
    for statement in constructor.body:
        arms = _arms(statement)
        homes = [next((n for n, arm in enumerate(arms) if each in arm), None) for each in begins]
        if None not in homes:
            return len(set(homes)) == len(homes) and all(
                _is_tensor(draft, constructor, each, attribute) for each in begins
            )
    return False


def _arms(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The arms of an `if` with all its `elif` and `else`."""
    arms = []
    while isinstance(statement, ast.If):
        arms.append(statement.body)
        if len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
            statement = statement.orelse[0]
        else:
            arms.append(statement.orelse)
            break
    return arms


def _is_tensor(
    draft: Draft, constructor: ast.FunctionDef, begin: ast.Assign | ast.AnnAssign, attribute: str
) -> bool:
    targets = begin.targets if isinstance(begin, ast.Assign) else [begin.target]
    value = begin.value
    if value is None or [dotted(each) for each in targets] != [f"self.{attribute}"]:
        return False
    if kinds_before(constructor, begin, draft.kinds({})).of(value).what == "tensor":
        return True
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in _OF_TENSORS
    )
