"""Loops over unlike parts of a model, each of which may give what is handed on in another shape: `for stage in self.stages: x = stage(x)`.

A flag would have torch.cond choose between what a round makes and what it began with, and these have to be of one shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.values import ClassValue, Const, Instance, Named, Sequence, Value
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

# Words in the names of arguments that say in which sizes a layer takes and gives tensors.
_OF_SIZES = (
    "in_",
    "out_",
    "dim",
    "channel",
    "feature",
    "size",
    "planes",
    "width",
    "chan",
    "stride",
    "filters",
)


def changing_parts(loop: ast.For, kinds: Kinds) -> set[str]:
    """The names that rounds of `loop` make of themselves by parts that are of several classes, or made with other sizes."""
    found: set[str] = set()
    for each in walk(loop):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        for name in set(bound(each.targets[0])) & set(reads(each.value)):
            if any(map(_differ, _parts_called(loop, each.value, name, kinds))):
                found.add(name)
    return found


def _parts_called(loop: ast.For, value: ast.expr, name: str, kinds: Kinds) -> Iterator[list[Instance]]:
    """The parts of which `value` calls one with `name`, by each such call."""
    for call in walk(value):
        if not isinstance(call, ast.Call) or name not in reads(
            [*call.args, *(each.value for each in call.keywords)]
        ):
            continue
        owner = None
        if isinstance(call.func, ast.Name):
            owner = _iterated(loop.target, loop.iter, call.func.id)
        elif isinstance(call.func, ast.Subscript) and set(bound(loop.target)) & set(reads(call.func.slice)):
            owner = call.func.value
        listed = None if owner is None else kinds.of(owner).value
        items = _items(listed)
        if len(items) > 1:
            yield items


def _iterated(target: ast.expr, over: ast.expr, name: str) -> ast.expr | None:
    """What `name`, in the target of a loop over `over`, is an element of."""
    if isinstance(target, ast.Name):
        return over if target.id == name else None
    if not (isinstance(target, ast.Tuple) and isinstance(over, ast.Call) and isinstance(over.func, ast.Name)):
        return None
    if over.func.id == "enumerate" and len(target.elts) == 2 and over.args:
        return _iterated(target.elts[1], over.args[0], name)
    if over.func.id == "zip" and len(target.elts) == len(over.args):
        pairs = zip(target.elts, over.args, strict=True)
        return next((found for each in pairs if (found := _iterated(*each, name)) is not None), None)
    return None


def _items(listed: Value | None) -> list[Instance]:
    held = listed.attributes.get("__items__") if isinstance(listed, Instance) else listed
    items = held.items if isinstance(held, Sequence) else None
    return [each for each in items or () if isinstance(each, Instance)]


def _differ(parts: list[Instance]) -> bool:
    first = parts[0]
    return any(_class(each) != _class(first) or _sizes(each) != _sizes(first) for each in parts[1:])


def _class(part: Instance) -> object:
    return part.cls.name if isinstance(part.cls, (ClassValue, Named)) else part.cls


def _sizes(part: Instance) -> list[object]:
    """The sizes with which `part`, or what is in a row of it, was made."""
    own: list[object] = [
        each.value
        for name, each in sorted(part.arguments.items())
        if isinstance(each, Const)
        and type(each.value) is int
        and any(word in name.lower() for word in _OF_SIZES)
    ]
    return own + [_sizes(each) for each in _items(part)]
