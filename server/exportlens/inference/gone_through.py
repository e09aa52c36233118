"""Arguments that are gone through where they are handed on: as rows, and the items of rows, of which `int` makes numbers."""

from __future__ import annotations

import ast

from exportlens.inference.callees import callee_of, takes_object_first
from exportlens.inference.counted_uses import asked_as_numbers
from exportlens.inference.machine import Machine
from exportlens.inference.values import Function
from exportlens.source.walking import walk

# How many calls deep an argument is followed.
_MAX_CALLS = 3


def gone_through_as_numbers(machine: Machine, function: Function, name: str, calls: int = 0) -> bool:
    """Whether all that `function` does with `name` is to go through it, or to hand it to functions of the workspace that do, and
    items, or the items of those, are read by `int` or compared, and used as nothing else that a number alone can be."""
    found = False
    for node in walk(function.node):
        if isinstance(node, (ast.For, ast.comprehension)):
            if not _mentions(node.iter, name):
                continue
            item = _item_of(node.iter, node.target, name)
            if item is None or not (
                asked_as_numbers(machine, function, item)
                or (item != name and gone_through_as_numbers(machine, function, item, calls))
            ):
                return False
            found = True
        elif isinstance(node, ast.Call) and any(_is_name(each, name) for each in node.args):
            if isinstance(node.func, ast.Name) and node.func.id in ("zip", "enumerate", "len"):
                continue
            place = next(index for index, each in enumerate(node.args) if _is_name(each, name))
            callee = callee_of(machine, function, name, node.func)
            if not isinstance(callee, Function) or calls >= _MAX_CALLS:
                return False
            spec = callee.node.args
            taken = [*spec.posonlyargs, *spec.args][place + takes_object_first(callee) :]
            if not taken or taken[0].annotation is not None:
                return False
            if not gone_through_as_numbers(machine, callee, taken[0].arg, calls + 1):
                return False
            found = True
    return found


def _item_of(iterated: ast.expr, target: ast.expr, name: str) -> str | None:
    """What a loop binds to items of `name`, which it goes through alone, counted, or beside others."""
    if _is_name(iterated, name):
        return target.id if isinstance(target, ast.Name) else None
    if not isinstance(iterated, ast.Call) or not isinstance(iterated.func, ast.Name):
        return None
    if not isinstance(target, ast.Tuple):
        return None
    if iterated.func.id == "enumerate" and len(target.elts) == 2 and iterated.args:
        return _item_of(iterated.args[0], target.elts[1], name)
    if iterated.func.id == "zip" and len(target.elts) == len(iterated.args):
        return next(
            (
                _item_of(each, part, name)
                for each, part in zip(iterated.args, target.elts, strict=True)
                if _mentions(each, name)
            ),
            None,
        )
    return None


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _mentions(node: ast.AST, name: str) -> bool:
    return any(_is_name(each, name) for each in walk(node))
