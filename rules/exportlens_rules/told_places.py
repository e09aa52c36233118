"""What may tell tracing that a number from data is a place inside of a tensor."""

from __future__ import annotations

import ast
from functools import cached_property

from exportlens.inference.places import ItemRead, ItemWrite
from exportlens.inference.values import Function
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.sizes.open_steps import TELLING_NOTHING
from exportlens.source.walking import walk

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
# An upper bound alone leaves it open whether the place is below zero (measured on torch 2.13).
_FROM_BELOW = frozenset({"max", "sym_max", "abs"})
_FROM_ABOVE = frozenset({"min", "sym_min"})


def may_be_bounded(place: ItemRead | ItemWrite, function: Function) -> bool:
    """Whether tracing may know that the places are inside of the tensor, as it does of what was a size, or was checked."""
    index = getattr(place.node, "slice", place.node)
    read = {id(one) for each in walk(index) if isinstance(each, ast.Call) for one in walk(each)}
    names = {each.id for each in walk(index) if isinstance(each, ast.Name) and id(each) not in read}
    return _Told(function).told(names, function.node) or any(
        isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _FROM_BELOW
        for value in _computed_of(names, function.node)
        for call in walk(value)
    )


class _Told:
    """One search for calls that may tell something of numbers, through the functions of the file that are given them."""

    def __init__(self, function: Function) -> None:
        self.chunks = [placed.chunk for placed in function.scope.document.placed]
        self.seen: set[tuple[int, str]] = set()

    def told(self, names: set[str], function: ast.AST) -> bool:
        """Whether a call in `function` may tell something of one of `names`."""
        for each in walk(function):
            if not isinstance(each, ast.Call):
                continue
            name = each.func.attr if isinstance(each.func, ast.Attribute) else ast.unparse(each.func)
            silent = name in TELLING_NOTHING or (name == "arange" and len(each.args) > 1)
            given = [*each.args, *(keyword.value for keyword in each.keywords)]
            # What torch.cond decides on tells nothing: neither way is taken for granted.
            given = given[1:] if name.rpartition(".")[2] == "cond" else given
            if not silent and any(_names(one, names) for one in given) and self._told_within(each, names):
                return True
        return False

    def _told_within(self, call: ast.Call, names: set[str]) -> bool:
        """Whether what `call` runs may; what the file does not define by that name alone may do anything."""
        called = dotted(call.func) or ""
        own = called.removeprefix("self.")
        found = self._defined.get(own, [])
        if not found or "." in own:
            return True
        for each in found:
            parameters = [one.arg for one in (*each.args.posonlyargs, *each.args.args)]
            parameters = (
                parameters[1:] if called.startswith("self.") and parameters[:1] == ["self"] else parameters
            )
            starred = [one for one in call.args if isinstance(one, ast.Starred)]
            if starred or len(call.args) > len(parameters):
                return True
            given = dict(zip(parameters, call.args, strict=False))
            given |= {one.arg or "": one.value for one in call.keywords}
            handed = {name for name, value in given.items() if _names(value, names)}
            new = {name for name in handed if (id(each), name) not in self.seen}
            self.seen |= {(id(each), name) for name in new}
            if "" in handed or (new and self.told(new, each)):
                return True
        return False

    @cached_property
    def _defined(self) -> dict[str, list[_Definition]]:
        """The functions of the file by name, methods and inner ones among them."""
        found: dict[str, list[_Definition]] = {}
        for chunk in self.chunks:
            for statement in chunk.body:
                for each in walk(statement):
                    if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        found.setdefault(each.name, []).append(each)
        return found


def _computed_of(names: set[str], function: ast.AST) -> list[ast.expr]:
    """What `function` binds `names` to, and what it binds those to that are bounded there."""
    bindings = [each for each in walk(function) if isinstance(each, ast.Assign)]
    found: list[ast.expr] = []
    known: set[str] = set()
    while names - known:
        known |= names
        found = [each.value for each in bindings if any(_names(target, known) for target in each.targets)]
        names = {
            one.id
            for value in found
            for call in walk(value)
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _FROM_ABOVE
            for one in walk(call)
            if isinstance(one, ast.Name)
        }
    return found


def _names(node: ast.expr, names: set[str]) -> bool:
    """Whether `node` computes with one of `names`, not with what it picks or cuts."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Subscript):
        return _names(node.value, names)
    return any(_names(each, names) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
