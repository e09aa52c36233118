"""Items of a dict that the first call computes of its inputs, and all later calls read: `if key not in self.means: self.means[key] = x.mean(0)`."""

from __future__ import annotations

import ast

from exportlens.inference.places import ContainerWrite
from exportlens.inference.values import Instance

from exportlens_rules.mutation.first_values import holds_data, is_made
from exportlens_rules.mutation.kept_holders import called_with, is_emptied
from exportlens_rules.mutation.state_reads import loaded
from exportlens_rules.reading import ancestors


def is_item_of_first_call(place: ContainerWrite) -> bool:
    """Whether the function puts what it computes of the values of its inputs where the dict has no such item yet, and the call reads
    the dict, so that the next call finds it."""
    function, node = place.site.function, place.node
    if place.how != "[]" or function is None or not isinstance(place.owner, Instance) or place.owner.traced:
        return False
    statement = next((each for each in ancestors(place) if isinstance(each, ast.Assign)), None)
    if not isinstance(node, ast.Subscript) or statement is None or statement.targets != [node]:
        return False
    item = ast.dump(loaded(node))
    if not is_made(place.value) or not _is_asked_first(place, statement, node):
        return False
    functions = called_with(place, function.node)
    if any(is_emptied(each, ast.dump(node.value)) for each in functions):
        return False
    if not any(_reads_item(each, node, item) for each in functions):
        return False
    return holds_data(place, statement.value)


def _is_asked_first(place: ContainerWrite, statement: ast.Assign, node: ast.Subscript) -> bool:
    """Whether the nearest question around the write is whether there is such an item."""
    inner: ast.stmt = statement
    for each in ancestors(place):
        if isinstance(each, ast.If):
            there = _asks_for(each.test, node)
            return there is not None and there is not (inner in each.body)
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(each, ast.stmt):
            inner = each
    return False


def _asks_for(test: ast.expr, node: ast.Subscript) -> bool | None:
    """Whether `test` comes out true where the item is there; None where it asks something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _asks_for(test.operand, node)
        return None if inner is None else not inner
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    holder, key, op, other = ast.dump(node.value), ast.dump(node.slice), test.ops[0], test.comparators[0]
    if isinstance(op, (ast.In, ast.NotIn)):
        names = _keyed(other)
        same = ast.dump(test.left) == key and ast.dump(names) == holder
        return isinstance(op, ast.In) if same else None
    got = test.left
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(other, ast.Constant) and other.value is None:
        same = (
            isinstance(got, ast.Call)
            and isinstance(got.func, ast.Attribute)
            and got.func.attr == "get"
            and ast.dump(got.func.value) == holder
            and [ast.dump(each) for each in got.args] == [key]
        )
        return isinstance(op, ast.IsNot) if same else None
    return None


def _keyed(node: ast.expr) -> ast.expr:
    """The dict of `dict.keys()`, or `node` itself."""
    called = node.func if isinstance(node, ast.Call) and not node.args else None
    return called.value if isinstance(called, ast.Attribute) and called.attr == "keys" else node


def _reads_item(function: ast.AST, write: ast.Subscript, item: str) -> bool:
    """Whether `function` reads the item, one of another key that is computed, or all of them."""
    holder = ast.dump(write.value)
    for each in ast.walk(function):
        if (
            isinstance(each, ast.Subscript)
            and isinstance(each.ctx, ast.Load)
            and ast.dump(each.value) == holder
        ):
            fixed = isinstance(each.slice, ast.Constant) and isinstance(write.slice, ast.Constant)
            if ast.dump(each) == item or not fixed:
                return True
        whole = isinstance(each, ast.Attribute) and each.attr in ("get", "values", "items")
        if whole and isinstance(each, ast.Attribute) and ast.dump(each.value) == holder:
            return True
    return False
