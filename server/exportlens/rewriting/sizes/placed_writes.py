"""Writes to rows and slices that numbers from data place, where a gradient flows: `x[:, n : n + 1] = v` ->
`x[:, torch.arange(x.shape[1])[n : n + 1]] = v`. So are methods that write in place, `x[:n].copy_(v)`.

torch exports no write to a view whose place data tells where a gradient flows (measured on torch 2.13). Slicing the places as the
tensor was sliced keeps what a slice means: bounds below zero count from the end, and those beyond it are cut off.
"""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ItemRead, ItemWrite
from exportlens.inference.values import (
    Sequence,
    Slice,
    TensorScalar,
    Value,
    options,
)
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.sizes.number_indices import converted_for_index, is_int, is_number_from_data


def is_placed_by_data(key: Value) -> bool:
    """Whether a number from data is an index of `key`, or bounds a slice of it."""
    parts = key.items if isinstance(key, Sequence) and key.items is not None else [key]
    return any(is_number_from_data(part) or _is_cut_by_data(part) for part in parts)


def is_one_row(key: Value) -> bool:
    """Whether data places nothing else than one row, along one dimension."""
    parts = key.items if isinstance(key, Sequence) and key.items is not None else [key]
    return sum(map(is_number_from_data, parts)) == 1 and not any(map(_is_cut_by_data, parts))


def write_by_places(place: ItemWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that writes to the elements at places which are tensors of their own."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Subscript) or dotted(node.value) is None:
            raise Refused("what is written to has no name of its own")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        key = place.key
        items = key.items if isinstance(node.slice, ast.Tuple) and isinstance(key, Sequence) else [key]
        if items is None or len(items) != len(parts):
            raise Refused("the indices are not written out one by one")
        swaps = _places(draft, node, parts, items)
        statement = draft.source.enclosing_statement(node)
        function = draft.source.enclosing_function(statement)
        if function is None:
            raise Refused("the indices are not inside of a function")
        kinds = kinds_before(function, statement, draft.kinds({}))
        converted = converted_for_index(draft, statement, node, place, kinds)
        if converted is None:
            raise Refused(
                f"what is written to `{draft.source.of(node)}` is not known to be a tensor or a number"
            )
        return draft.replace("Write to places in a tensor of their own", [*swaps, *converted])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


# What a method writes in place, as an assignment; `{}` is what it is given.
_ASSIGNED = {
    "copy_": "= {}",
    "fill_": "= {}",
    "zero_": "= 0",
    "add_": "+= {}",
    "sub_": "-= {}",
    "mul_": "*= {}",
    "div_": "/= {}",
}


def in_place_call(node: ast.AST, around: list[ast.AST]) -> ast.Call | None:
    """The call `x[:n].copy_(v)` that is a statement, `node` being `x[:n]` and `around` the nodes around it, innermost first."""
    match around[:3]:
        case [ast.Attribute(value=owner, attr=attr), ast.Call() as call, ast.Expr()] if owner is node:
            return call if attr.endswith("_") and not attr.endswith("__") and call.func is around[0] else None
    return None


def write_in_place_by_places(place: ItemRead, context: RewriteContext) -> Fix | Refusal:
    """The fix that assigns to places what `x[:n].copy_(v)` writes to them."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        call = in_place_call(node, list(source.ancestors(node)))
        if call is None or not isinstance(node, ast.Subscript) or dotted(node.value) is None:
            raise Refused("what is written to has no name of its own")
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        form, function = _ASSIGNED.get(name), source.enclosing_function(call)
        if form is None or call.keywords or len(call.args) != form.count("{}") or function is None:
            raise Refused(f"`{name}` with these arguments is no assignment: compute the tensor and assign it")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        key = place.key
        items = key.items if isinstance(node.slice, ast.Tuple) and isinstance(key, Sequence) else [key]
        if items is None or len(items) != len(parts):
            raise Refused("the indices are not written out one by one")
        target = source.of(node, _places(draft, node, parts, items))
        kinds = kinds_before(function, source.enclosing_statement(call), draft.kinds({}))
        given = ""
        if call.args:
            given, value, base = source.of(call.args[0]), kinds.of(call.args[0]), kinds.of(node.value)
            is_number = value.what in ("number", "size", "scalar")
            if form.startswith("=") and not is_number and (value.dtype is None or value.dtype != base.dtype):
                given = f"{primary(given)}.to({source.of(node.value)})"
        text = f"{target} {form.format(given)}"
        return draft.replace("Write to places in a tensor of their own", [source.swap(call, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_cut_by_data(part: Value) -> bool:
    return isinstance(part, Slice) and any(
        isinstance(each, TensorScalar)
        for bound in (part.lower, part.upper)
        for each in (options(bound) if bound is not None else ())
    )


def _places(
    draft: Draft, node: ast.Subscript, parts: list[ast.expr], items: list[Value]
) -> list[Replacement]:
    base, torch = draft.source.of(node.value), draft.torch
    swaps: list[Replacement] = []
    placed: list[int] = []
    behind = False
    for index, (part, item) in enumerate(zip(parts, items, strict=True)):
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            behind = True
        elif is_number_from_data(item):
            placed.append(index)
            swaps.append(draft.source.swap(part, f"{torch}.full((1,), {draft.source.of(part)})"))
        elif _is_cut_by_data(item):
            if not isinstance(part, ast.Slice) or part.step is not None:
                raise Refused("the slice has a step")
            placed.append(index)
            dim = -_counted(parts[index:]) if behind else _counted(parts[:index])
            text = f"{torch}.arange({base}.shape[{dim}], device={base}.device)[{draft.source.of(part)}]"
            swaps.append(draft.source.swap(part, text))
        elif not (_is_basic(part) or is_int(item)):
            raise Refused(f"it is not certain that `{draft.source.of(part)}` is one int")
    slices = [index for index in placed if isinstance(parts[index], ast.Slice)]
    if len(slices) > 1 or placed != list(range(placed[0], placed[0] + len(placed))):
        raise Refused("data places several of the slices, or what is not next to each other")
    if not slices and not all(is_int(each) for each in items[: placed[0]]):
        raise Refused("a slice stands before the row: what fits a row need not fit one row of rows there")
    return swaps


def _counted(parts: list[ast.expr]) -> int:
    """How many dimensions of the tensor `parts` take."""
    return sum(not (isinstance(each, ast.Constant) and each.value is None) for each in parts)


def _is_basic(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is None)
