"""Sizes that change from round to round: what while_loop carries keeps its shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_CHANGES = "the size of `{}` changes from round to round, and while_loop carries tensors of one shape: mark in a mask what is left"
_GROWS = "`{}` grows from round to round, and while_loop carries tensors of one shape: write into rows that are made before"
_JOINING = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack"})
_GROWING = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})
_SIZES = frozenset({"numel", "nelement", "size", "shape"})


def refuse_changing_sizes(
    test: ast.expr | None, body: Sequence[ast.stmt], carried: Sequence[str], kinds: Kinds
) -> None:
    """Raise Refused where a round leaves a part of a carried tensor, `left = left[1:]` or `left = left[mask]`, or adds to it,
    `rows = torch.cat([rows, row])`, or where the loop goes on by the size of one, which no round can change."""
    for name in _grown(body, kinds):
        if name in carried:
            raise Refused(_GROWS.format(name))
    parts: dict[str, set[str]] = {}
    for statement in body:
        for node in walk(statement):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            target, value = node.targets[0].id, node.value
            taken = isinstance(value, ast.Subscript) and _leaves_a_part(value.slice, kinds)
            owner = value.value if isinstance(value, ast.Subscript) and taken else value
            name = owner.id if isinstance(owner, ast.Name) else ""
            of = parts.get(name, set()) | ({name} if taken else set())
            if target in of & set(carried):
                raise Refused(_CHANGES.format(target))
            parts[target] = of
    for node in walk(test) if test is not None else ():
        asked: ast.expr | None = None
        if isinstance(node, ast.Attribute) and node.attr in _SIZES:
            asked = node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and node.args:
            asked = node.args[0]
        if isinstance(asked, ast.Name) and asked.id in carried:
            raise Refused(_CHANGES.format(asked.id))


def _grown(body: Sequence[ast.stmt], kinds: Kinds) -> Iterator[str]:
    """The names that a round binds only to themselves and more."""
    stores = [
        each.id
        for statement in body
        for each in walk(statement)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]
    for statement in body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        if (
            isinstance(target, ast.Name)
            and stores.count(target.id) == 1
            and isinstance(value, ast.Call)
            and kinds.qualified(value.func) in _JOINING
            and value.args
            and isinstance(value.args[0], (ast.List, ast.Tuple))
            and len(value.args[0].elts) > 1
            and any(isinstance(each, ast.Name) and each.id == target.id for each in value.args[0].elts)
        ):
            yield target.id


def _leaves_a_part(index: ast.expr, kinds: Kinds) -> bool:
    """Whether fewer rows are left: all but the first or the last, or those that a mask picks."""
    if isinstance(index, ast.Slice):
        lower, upper = index.lower, index.upper
        return index.step is None and (
            (isinstance(lower, ast.Constant) and bool(lower.value) and upper is None)
            or (isinstance(upper, ast.UnaryOp) and isinstance(upper.op, ast.USub))
        )
    return isinstance(index, ast.Compare) or kinds.of(index).dtype == "bool"


def grows(statement: ast.Assign) -> str | None:
    """The name that `statement` binds to what it was with more behind or before it: `x = torch.cat([x, y])`."""
    call, target = statement.value, statement.targets[0]
    if (
        not isinstance(target, ast.Name)
        or not isinstance(call, ast.Call)
        or (dotted(call.func) or "").rpartition(".")[2] not in _GROWING
        or not call.args
        or not isinstance(call.args[0], (ast.List, ast.Tuple))
    ):
        return None
    whole = {each.id for each in call.args[0].elts if isinstance(each, ast.Name)}
    return target.id if target.id in whole else None
