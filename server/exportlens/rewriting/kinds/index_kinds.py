"""What indexing gives: kinds of parts of tensors, of containers and of lists of modules."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from exportlens.inference.values import ClassValue, Const, Instance, Mapping_, Sequence, Tensor, Value
from exportlens.rewriting.kinds.iterated import cut
from exportlens.rewriting.kinds.kind import UNKNOWN_KIND, Kind, element_of, length_from_data, of_value, one_of

if TYPE_CHECKING:
    from exportlens.rewriting.kinds.kinds import Kinds


def of_subscript(kinds: Kinds, node: ast.Subscript) -> Kind:
    owner = kinds.of(node.value)
    if owner.what == "tensor":
        chosen = kinds.of(node.slice)
        masked = chosen.dtype == "bool"
        # An int tensor of no dimensions selects as a number does, which gives a view.
        taken = (chosen.dtype or "").startswith("int") and bool(chosen.rank)
        return Kind(
            "tensor",
            owner.dtype,
            _rank_after_index(kinds, owner.rank, node.slice),
            frozenset() if masked or taken else owner.roots,
            value=Tensor(unbacked=True)
            if masked or length_from_data(chosen) or _is_cut_by_data(kinds, node.slice)
            else None,
            moved=owner.moved and not (masked or taken),
            parted=not (masked or taken) and (owner.parted or _leaves_gaps(node.slice)),
            later=not (masked or taken) and (owner.later or _begins_later(node.slice)),
        )
    if owner.what == "container":
        if (
            isinstance(node.slice, ast.Constant)
            and node.slice.value in owner.keys
            and owner.items is not None
        ):
            return owner.items[owner.keys.index(node.slice.value)]
        if isinstance(owner.value, Mapping_) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
            known = owner.value.items.get(_key(kinds, node.slice))
            return UNKNOWN_KIND if known is None else replace(of_value(known, ""), roots=owner.roots)
        if (
            owner.items is not None
            and not owner.keys
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, int)
        ):
            index = node.slice.value
            if -len(owner.items) <= index < len(owner.items):
                return owner.items[index]
        if isinstance(node.slice, ast.Slice):
            part = node.slice
            bounds = [
                None if each is None else kinds.of(each) for each in (part.lower, part.upper, part.step)
            ]
            return replace(owner, items=cut(owner, bounds))
        return element_of(owner)
    if owner.what == "size" or (owner.what == "static" and owner.type == "size"):
        first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        return Kind("scalar" if first and isinstance(owner.value, Tensor) else "size", type="int")
    if isinstance(owner.value, Instance):
        return _module_of(owner.value, _key(kinds, node.slice), kinds.of(node.slice).from_data)
    # A part of something unknown may share its memory.
    return replace(UNKNOWN_KIND, roots=owner.roots) if owner.what == "unknown" else UNKNOWN_KIND


def _key(kinds: Kinds, node: ast.expr) -> object:
    """The text or number that `node` certainly is; None where that is not known."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        below = _key(kinds, node.operand)
        return -below if isinstance(below, int) else None
    value = kinds.of(node).value
    return value.value if isinstance(value, Const) else None


def _is_cut_by_data(kinds: Kinds, index: ast.expr) -> bool:
    """Whether the first dimension is cut at a number from data: `x[:n]`."""
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    bounds = [first.lower, first.upper] if isinstance(first, ast.Slice) else []
    return any(each is not None and kinds.of(each).from_data for each in bounds)


def _rank_after_index(kinds: Kinds, rank: int | None, index: ast.expr) -> int | None:
    if rank is None:
        return None
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if len(parts) == 1 and (only := kinds.of(parts[0])).what == "tensor":
        whole = (only.dtype or "").startswith("int")
        return rank + only.rank - 1 if whole and only.rank is not None else None
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            rank += 1
        elif isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis):
            continue
        elif kinds.of(part).what in ("number", "size") or isinstance(part, ast.UnaryOp):
            rank -= 1
        else:
            return None
    return rank if rank >= 0 else None


def _leaves_gaps(index: ast.expr) -> bool:
    """Whether what `index` takes of a tensor may have gaps between its elements: it is no stretch of the first dimension."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    whole = [isinstance(each, ast.Slice) and not (each.lower or each.upper or each.step) for each in parts]
    added = [isinstance(each, ast.Constant) and each.value is None for each in parts]
    first = 0
    while first < len(parts) and (added[first] or not _leaves_dimension(parts[first])):
        first += 1
    stretch = parts[first] if first < len(parts) else None
    if isinstance(stretch, ast.Slice):
        if stretch.step is not None:
            return True
        first += 1
    return any(not (whole[at] or added[at] or _is_ellipsis(parts[at])) for at in range(first, len(parts)))


def _begins_later(index: ast.expr) -> bool:
    """Whether what `index` takes of a tensor may begin behind its first element."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    firsts = [each.lower if isinstance(each, ast.Slice) else each for each in parts]
    at_once = [
        each is None or (isinstance(each, ast.Constant) and not each.value) or _is_ellipsis(each)
        for each in firsts
    ]
    return not all(at_once)


def _leaves_dimension(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) or _is_ellipsis(part)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _module_of(modules: Instance, key: object, by_data: bool) -> Kind:
    """The module that `modules`, a list or a dict of them, holds for `key`; where that is not known one of them, with what it
    is where all are alike as far as their results go. Those of the file that are chosen `by_data` become ways of a branch."""
    held = modules.attributes.get("__items__")
    if isinstance(held, Mapping_):
        named = held.items
        items: Iterable[Value] = [named[key]] if isinstance(key, str) and key in named else named.values()
    else:
        items = held.items if isinstance(held, Sequence) and held.items else ()
    items = list(items)
    if isinstance(key, int) and -len(items) <= key < len(items):
        items = [items[key]]
    found = [each for each in items if isinstance(each, Instance)]
    if not found or len(found) != len(items):
        return UNKNOWN_KIND
    own = any(isinstance(each.cls, ClassValue) for each in found)
    return Kind("object", roots=None, value=None if by_data and own else one_of(found))
