"""Parts of a dict that only some ways set, where all that is done with them is to add them up: without them zero is added.

losses = {"class": a}                          losses_class = a
if found.any():                                losses_box = 0
    losses["box"] = b                  ->      if found.any():
return sum(losses.values())                        losses_box = b
                                               return sum({"class": losses_class, "box": losses_box}.values())
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.names import reads
from exportlens.rewriting.code.text import Source


def is_added_up(source: Source, use: ast.Name) -> bool:
    """Whether the values of the dict `use` are added up here, and nothing else is done: `sum(d.values())`."""
    method = source.parents[use]
    call = source.parents.get(method)
    if not (isinstance(method, ast.Attribute) and isinstance(call, ast.Call) and not call.args):
        return False
    around = source.parents.get(call)
    if method.attr not in ("values", "items") or around is None:
        return False
    if isinstance(around, ast.comprehension):
        return _is_sum_of_each(source, around, method.attr)
    if isinstance(around, ast.For):
        return around.iter is call and _adds_each(around, method.attr)
    return (
        method.attr == "values"
        and isinstance(around, ast.Call)
        and _is_sum(around)
        and around.args[0] is call
    )


def _is_sum(node: ast.AST) -> bool:
    """Whether `node` is `sum(values)` or `sum(values, start)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "sum"
        and len(node.args) in (1, 2)
    )


def _value_of(target: ast.expr, method: str) -> str | None:
    """The name that a value has in a loop through the dict."""
    if method == "items":
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return None
        target = target.elts[1]
    return target.id if isinstance(target, ast.Name) else None


def _is_sum_of_each(source: Source, rounds: ast.comprehension, method: str) -> bool:
    comprehension = source.parents[rounds]
    name = _value_of(rounds.target, method)
    return (
        isinstance(comprehension, (ast.GeneratorExp, ast.ListComp))
        and len(comprehension.generators) == 1
        and not rounds.ifs
        and isinstance(comprehension.elt, ast.Name)
        and comprehension.elt.id == name
        and _is_sum(source.parents[comprehension])
    )


def _adds_each(loop: ast.For, method: str) -> bool:
    """Whether the loop does nothing but `total = total + value`."""
    name = _value_of(loop.target, method)
    if name is None or len(loop.body) != 1 or loop.orelse:
        return False
    statement = loop.body[0]
    if isinstance(statement, ast.AugAssign):
        plain = isinstance(statement.op, ast.Add) and isinstance(statement.target, ast.Name)
        return plain and _is_name(statement.value, name)
    if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp)):
        return False
    total, added = statement.targets[0], statement.value
    return (
        len(statement.targets) == 1
        and isinstance(added.op, ast.Add)
        and isinstance(total, ast.Name)
        and reads(added) == {total.id, name}
        and _is_name(added.left, total.id) | _is_name(added.left, name)
        and _is_name(added.right, total.id) | _is_name(added.right, name)
    )


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def got_or_zero(source: Source, use: ast.Name) -> tuple[str | int, ast.Call] | None:
    """The key and the call of `d.get("key", 0)`."""
    method = source.parents[use]
    call = source.parents.get(method)
    if (
        not (isinstance(method, ast.Attribute) and method.attr == "get")
        or not isinstance(call, ast.Call)
        or call.func is not method
        or len(call.args) != 2
        or call.keywords
    ):
        return None
    key, other = call.args
    if not (isinstance(key, ast.Constant) and isinstance(other, ast.Constant)):
        return None
    zero = type(other.value) in (int, float) and other.value == 0
    return (key.value, call) if zero and type(key.value) in (str, int) else None  # type: ignore[return-value]
