"""Writes to slices that tensor data bounds: `mask[i, :n] = 1` fills where `torch.arange` is below `n`."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ItemWrite
from exportlens.inference.values import Const, Sequence, Shape, Slice, Tensor, Value, options
from exportlens.rewriting.calls.one_device import is_on_host
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, dotted, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kind import of_value
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.supposed_parts import stems_from
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.walking import walk

# What they give counts or places something: it is never below zero (https://docs.pytorch.org/docs/stable/torch.html).
_NEVER_NEGATIVE = frozenset({"argmax", "argmin", "count_nonzero", "numel", "bincount", "len"})
_COMPUTING = frozenset({"max", "min", "amax", "amin", "sum", "long", "int", "squeeze", "argmax", "argmin"})
# Characters of a fill that is still written in one line.
_LONG = 100
_READ = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.Tuple,
    ast.Slice,
    ast.BinOp,
    ast.operator,
    ast.UnaryOp,
    ast.unaryop,
    ast.expr_context,
)


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A slice that data bounds: the dimension of the written tensor that it is of, and that of the view of all its rows."""

    node: ast.Slice
    known: Slice
    of_base: int
    of_view: int


def is_bounded_by_data(key: Value) -> bool:
    """Whether a slice in the index `key` is bounded by a tensor."""
    parts = key.items if isinstance(key, Sequence) and key.items is not None else (key,)
    return any(_by_data(part) for part in parts)


def fill_where_below(place: ItemWrite, context: RewriteContext) -> Fix | Refusal:
    """`t[i].masked_fill_(torch.arange(t.shape[1], device=t.device) < n, v)` for `t[i, :n] = v`, `v` being one number."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Subscript):
            raise Refused("the index is not written in brackets")
        statement = source.enclosing_statement(node)
        function = source.enclosing_function(statement)
        if (
            function is None
            or not isinstance(statement, ast.Assign)
            or len(statement.targets) != 1
            or statement.targets[0] is not node
        ):
            raise Refused(f"`{source.of(node)}` is written together with other targets, or computed with")
        kinds = kinds_before(function, statement, draft.kinds({}))
        written = dotted(node.value)
        if written is not None and kinds.of(node.value).what == "unknown":
            # What the function was given says what it makes of that.
            kinds.names[written] = of_value(place.owner, written)
        if not _is_number(statement.value, kinds):
            return _bounds_read(draft, statement, node, place.key)
        text = _fill(draft, node, statement.value, place.key, kinds)
        if len(text) > _LONG and source.begins_line(statement):
            text = _fill(draft, node, statement.value, place.key, kinds, hoisted=statement)
        return draft.replace("Fill where `torch.arange` is within the bounds", [source.swap(statement, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _by_data(part: Value) -> bool:
    return isinstance(part, Slice) and any(
        isinstance(each, Tensor)
        for bound in (part.lower, part.upper)
        for each in (options(bound) if bound is not None else ())
    )


def _is_number(value: ast.expr, kinds: Kinds) -> bool:
    literal = isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
    return literal or kinds.of(value).what == "number"


def _bounds_read(draft: Draft, statement: ast.Assign, node: ast.Subscript, key: Value) -> Fix:
    """`n.item()` for the bounds that are tensors, wherever the statement slices by them: tracing takes numbers that it knows
    nothing of as bounds, and sizes made of one number are the same."""
    source = draft.source
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    items = key.items if isinstance(key, Sequence) and key.items is not None else (key,)
    if len(parts) != len(items):
        raise Refused("the index is not written part by part")
    bounds = {
        ast.dump(bound)
        for part, item in zip(parts, items, strict=True)
        if isinstance(part, ast.Slice) and isinstance(item, Slice)
        for bound, known in ((part.lower, item.lower), (part.upper, item.upper))
        if bound is not None
        and known is not None
        and all(isinstance(each, Tensor) for each in options(known))
    }
    found = [
        bound
        for each in ast.walk(statement)
        if isinstance(each, ast.Slice)
        for bound in (each.lower, each.upper)
        if bound is not None and ast.dump(bound) in bounds
    ]
    if not found or not all(map(_is_path, found)) or _may_be_numbers(draft, found):
        raise Refused("what bounds the slice is not known to be a tensor each time that it is read")
    swaps = [source.swap(each, f"{primary(source.of(each))}.item()") for each in found]
    return draft.replace("Bound the slices by numbers", swaps, uses_torch=False)


def _may_be_numbers(draft: Draft, bounds: list[ast.expr]) -> bool:
    """Whether one of `bounds` is what a function is given that is called several times: elsewhere it may be given a number."""
    function = draft.source.enclosing_function(bounds[0])
    given = {each.arg for each in arguments(function.args) if each.annotation is None} if function else set()
    if function is None or given.isdisjoint(reads(bounds)):
        return False
    calls = (
        each
        for placed in draft.context.document.placed
        for statement in placed.chunk.body
        for each in walk(statement)
        if isinstance(each, ast.Call) and (dotted(each.func) or "").rpartition(".")[2] == function.name
    )
    return sum(1 for _ in calls) > 1


def _fill(
    draft: Draft,
    node: ast.Subscript,
    value: ast.expr,
    key: Value,
    kinds: Kinds,
    hoisted: ast.stmt | None = None,
) -> str:
    """The text that fills; with what is `hoisted` out of it into lines before the statement."""
    source = draft.source
    base = source.of(node.value)
    if kinds.of(node.value).what != "tensor" or not _is_path(node.value):
        raise Refused(f"`{base}` is not certain to be a tensor")
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    items = key.items if isinstance(key, Sequence) and key.items is not None else (key,)
    bounded = _bounded(source, parts, items, kinds)
    rank = kinds.of(node.value).rank
    others = [":" if any(each.node is part for each in bounded) else source.of(part) for part in parts]
    while others and others[-1] == ":":
        others.pop()
    view = f"{base}[{', '.join(others)}]" if others else base
    taken = sum(not isinstance(part, ast.Slice) for part in parts)
    last = None if rank is None else rank - taken - 1
    dims = [each.of_view for each in bounded]
    if last is None or dims != list(range(last + 1 - len(dims), last + 1)):
        ends = range(-len(dims), 0)
        moved = f"{dims[0]}, -1" if len(dims) == 1 else f"{tuple(dims)}, {tuple(ends)}"
        view = f"{view}.movedim({moved})"
    lines: list[str] = []
    conditions: list[str] = []
    taken_names = draft.taken(source.tree)
    function = source.enclosing_function(node)
    on_host = function is not None and is_on_host(source, function, node.value, draft.kinds({}))
    for each, wish in zip(bounded, ("places",) if len(bounded) == 1 else ("rows", "columns"), strict=True):
        places = f"{draft.torch}.arange({base}.shape[{each.of_base}], device={base}.device)"
        if hoisted is not None:
            name = fresh(wish, taken_names)
            lines.append(f"{name} = {places}")
            places = name
        conditions.append(_condition(draft, places, base, each, kinds, on_host))
    for index, condition in enumerate(conditions):
        after = len(conditions) - 1 - index
        if len(conditions) > 1:
            condition = f"({condition})"
        conditions[index] = condition + (f"[:{', None' * after}]" if after else "")
    lines.append(f"{view}.masked_fill_({' & '.join(conditions)}, {source.of(value)})")
    return f"{source.newline}{'' if hoisted is None else source.indent_of(hoisted)}".join(lines)


def _bounded(source: Source, parts: list[ast.expr], items: Iterable[Value], kinds: Kinds) -> list[_Bounded]:
    """The slices that data bounds. Raises Refused where another part is no int and no slice."""
    found: list[_Bounded] = []
    of_view = 0
    known = list(items)
    if len(known) != len(parts):
        raise Refused("the index is not written part by part")
    for of_base, (part, item) in enumerate(zip(parts, known, strict=True)):
        if isinstance(part, ast.Slice):
            if isinstance(item, Slice) and _by_data(item):
                if part.step is not None:
                    raise Refused("the slice has a step")
                found.append(_Bounded(part, item, of_base, of_view))
            of_view += 1
        elif kinds.of(part).what not in ("number", "size") or kinds.of(part).type != "int":
            raise Refused(f"it is not certain that `{source.of(part)}` is one int")
    if not 1 <= len(found) <= 2:
        raise Refused("data bounds more than two slices")
    return found


def _condition(draft: Draft, places: str, base: str, bounded: _Bounded, kinds: Kinds, on_host: bool) -> str:
    """Where the slice is, along its dimension; one of a tensor that is `on_host` is compared there."""
    size = f"{base}.shape[{bounded.of_base}]"

    def limit(bound: ast.expr, known: Value | None) -> str:
        text = _from_the_front(draft.source, bound, known, size, kinds)
        if not on_host or not any(isinstance(each, Tensor) for each in options(known or Const(0))):
            return text
        if stems_from(draft.source.enclosing_function(bound), bound, draft.supposed):
            # It may as well be a number of Python.
            return text
        return f"{primary(text)}.to({base}.device)"

    sides = [
        f"{places} {sign} {limit(bound, known)}"
        for sign, bound, known in (
            (">=", bounded.node.lower, bounded.known.lower),
            ("<", bounded.node.upper, bounded.known.upper),
        )
        if bound is not None
    ]
    return sides[0] if len(sides) == 1 else " & ".join(f"({side})" for side in sides)


def _from_the_front(source: Source, bound: ast.expr, known: Value | None, size: str, kinds: Kinds) -> str:
    """The text of a bound, counted from the front: one below zero counts from the end."""
    text = primary(source.of(bound))
    if never_negative(bound, kinds) or (known is not None and all(map(_counts, options(known)))):
        return text
    is_tensor = known is not None and all(isinstance(each, Tensor) for each in options(known))
    if not is_tensor or not _is_path(bound):
        raise Refused(f"it is not certain that `{text}` is not below zero, which would count from the end")
    return f"{text} + {size} * ({text} < 0)"


def _counts(bound: Value) -> bool:
    """Whether a bound is a size of a tensor, or a number that is not below zero; a size less another may be."""
    if isinstance(bound, Const):
        return isinstance(bound.value, int) and bound.value >= 0
    return isinstance(bound, Shape) and bound.whole


def never_negative(node: ast.expr, kinds: Kinds) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value >= 0
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return never_negative(node.left, kinds) and never_negative(node.right, kinds)
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func) or ""
    if name != "sum":
        return name in _NEVER_NEGATIVE
    summed = node.func.value if isinstance(node.func, ast.Attribute) else None
    if summed is None or kinds.qualified(node.func) is not None:
        summed = node.args[0] if node.args else None
    return summed is not None and kinds.of(summed).dtype == "bool"


def _is_path(node: ast.expr) -> bool:
    """Whether reading `node` twice gives the same: names, attributes, items, and what is computed of them."""
    return all(
        isinstance(each, _READ) or (isinstance(each, ast.Call) and _computes(each)) for each in ast.walk(node)
    )


def _computes(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in _COMPUTING
