"""What iterating gives, element by element, where it is known how many there are: lists of modules, `zip`, `enumerate`."""

from __future__ import annotations

import ast
import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from exportlens.inference.lattice import join
from exportlens.inference.values import Const, Instance, Mapping_, Sequence, Tensor, Value
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND, Kind, holds_tensors_alone, of_value, union

if TYPE_CHECKING:
    from exportlens.rewriting.kinds.kinds import Kinds

# More elements than these are not followed one by one.
_MOST = 64


def elements(kind: Kind) -> tuple[Kind, ...] | None:
    """The elements of `kind` in their order, None where they are not known."""
    if kind.what == "container":
        return kind.items if not kind.keys else None
    if not isinstance(kind.value, Instance):
        return None
    held = kind.value.attributes.get("__items__")
    if not isinstance(held, Sequence) or held.items is None:
        return None
    return tuple(_kept(of_value(each, ""), kind) for each in held.items)


def of_dict(owner: Kind, method: str) -> Kind | None:
    """What `keys`, `values` or `items` of a dict gives; None where not all of its keys are known.

    A dict that is written out is known part by part. Of one that the interpreter knows, each key may be missing on some way.
    """
    held = owner.value.attributes.get("__items__") if isinstance(owner.value, Instance) else owner.value
    if owner.what == "container" and owner.keys and owner.items is not None:
        keys = [replace(of_value(Const(key), ""), roots=frozenset()) for key in owner.keys]
        both = [_together(pair) for pair in zip(keys, owner.items, strict=True)]
        parts = {"keys": tuple(keys), "values": owner.items, "items": tuple(both)}[method]
        return Kind("container", roots=owner.roots, items=parts)
    if not isinstance(held, Mapping_) or held.rest is not None or held.factory is not None or not held.items:
        return None
    known: list[Value] = [Const(key) for key in held.items]
    key, value = functools.reduce(join, known), functools.reduce(join, held.items.values())
    element = {"keys": key, "values": value, "items": Sequence("tuple", [key, value])}[method]
    return Kind("container", roots=owner.roots, value=Sequence("list", None, element))


def of_same_keys(node: ast.DictComp, kinds: Kinds) -> Kind | None:
    """What `{key: f(value) for key, value in d.items()}` gives, whichever keys `d` has; None where it is another comprehension."""
    rounds = node.generators[0]
    call, target = rounds.iter, rounds.target
    if rounds.ifs or not (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not call.args
    ):
        return None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or call.func.attr != "items":
        return None
    owner = kinds.of(call.func.value)
    held = owner.value
    if not isinstance(held, Mapping_) or held.kind != "dict" or not held.items:
        return None
    if ast.unparse(node.key) != ast.unparse(target.elts[0]) or not holds_tensors_alone(owner):
        return None
    # What is done to one of them is done to all.
    found = kinds.each_of(target, node.value, kinds.of(call))
    if found is UNKNOWN_KIND:
        return None
    return Kind("container", roots=found.roots, value=Mapping_(dict.fromkeys(held.items, Tensor())))


def _kept(element: Kind, owner: Kind) -> Kind:
    """`element`, which `owner` holds: its memory is that of `owner`."""
    return Kind(element.what, roots=owner.roots, type=element.type, value=element.value)


def of_iterating(name: str, given: list[Kind]) -> Kind:
    """What `name`, as `zip`, gives for arguments of the kinds `given`."""
    rows = [elements(each) for each in given]
    known = [each for each in rows if each is not None and len(each) <= _MOST]
    roots = union(given)
    if name not in ("list", "tuple", "reversed", "zip", "enumerate") or not given or len(known) != len(rows):
        return Kind("container", roots=roots)
    if name == "zip":
        return Kind("container", roots=roots, items=tuple(map(_together, zip(*known, strict=False))))
    if len(given) > 1:
        return Kind("container", roots=roots)
    if name == "enumerate":
        pairs = ((_index(at), each) for at, each in enumerate(known[0]))
        return Kind("container", roots=roots, items=tuple(map(_together, pairs)))
    return Kind("container", roots=roots, items=known[0][::-1] if name == "reversed" else known[0])


def _together(parts: tuple[Kind, ...]) -> Kind:
    return Kind("container", roots=union(list(parts)), items=parts)


def _index(at: int) -> Kind:
    return Kind("number", type="int", value=Const(at))


def cut(kind: Kind, bounds: list[Kind | None]) -> tuple[Kind, ...] | None:
    """The elements of the slice of `kind` with a lower bound, an upper one and a step; None where they are not known."""
    items = elements(kind)
    limits = [None if each is None else each.value for each in bounds]
    if items is None or any(not isinstance(each, Const) for each in limits if each is not None):
        return None
    numbers = [each.value if isinstance(each, Const) else None for each in limits]
    if any(
        given is not None and type(number) is not int for given, number in zip(bounds, numbers, strict=True)
    ):
        return None
    return items[slice(*numbers)] if numbers[2] != 0 else None
