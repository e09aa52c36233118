"""Tensors where torch's functions take numbers, read out before the call: `x.narrow(0, t, n)` -> `x.narrow(0, t.item(), n)`.

torch reads them out as well, inside of the call, where tracing cannot follow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Sequence, Tensor, Value
from exportlens.rewriting.code.callers import given_to
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.precedence import primary


def read_out_as_numbers(
    place: Call, context: RewriteContext, names: Iterable[tuple[str, int | None]]
) -> Fix | Refusal:
    """The call with `.item()` of each tensor among the arguments `names`, each with its position in the function."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
            raise Refused("the arguments are not written in the call")
        given = [each for name, at in names for each in _given(node, place, name, at)]
        read = [each for each, value in given if isinstance(value, Tensor)]
        if not read:
            raise Refused("the numbers are not written in the call")
        for each in read:
            if may_be_number(draft, each):
                raise Refused(f"`{draft.source.of(each)}` may be a number in another call of the function")
        swaps = [draft.source.swap(each, f"{primary(draft.source.of(each))}.item()") for each in read]
        return draft.replace(
            "Read the number out with `.item()`", swaps, Applicability.SAFE, uses_torch=False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _given(node: ast.Call, place: Call, name: str, at: int | None) -> Iterator[tuple[ast.expr, Value | None]]:
    shift = 1 if place.name.startswith("torch.Tensor.") else 0
    written = {each.arg: each.value for each in node.keywords}.get(name)
    value = place.kwargs.get(name)
    if written is None and at is not None and shift <= at < len(node.args) + shift:
        written, value = node.args[at - shift], place.args[at - shift]
    if written is None:
        return
    if not isinstance(value, Sequence):
        yield written, value
    elif (
        not isinstance(written, (ast.Tuple, ast.List))
        or value.items is None
        or len(value.items) != len(written.elts)
    ):
        raise Refused("the numbers are not written in the call")
    else:
        yield from zip(written.elts, value.items, strict=True)


def may_be_number(draft: Draft, node: ast.expr) -> bool:
    """Whether `node` is a parameter of a function that others call: of `forward`, of one that a known call gives a number."""
    function = draft.source.enclosing_function(node)
    if function is None or not isinstance(node, ast.Name):
        return False
    given = function.args
    if node.id not in {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}:
        return False
    if function.name != "forward":
        return True
    known = given_to(draft.source, function, node.id, draft.kinds({}))
    return any(each.what in ("scalar", "size", "number") for each in known)
