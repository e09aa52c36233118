"""Attributes that are views, in code that becomes a function of torch.cond or while_loop.

There `t` and `t.T` of a tensor from outside are two tensors of the same memory, which torch refuses; what a method gives is
made inside (measured on torch 2.13).
"""

from __future__ import annotations

import ast
from typing import TypeVar

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import AttributeRead
from exportlens.inference.values import Tensor
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.text import Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds

METHODS = {"T": ".t()", "mT": ".transpose(-2, -1)"}


_Node = TypeVar("_Node", ast.If, ast.IfExp, ast.For | ast.While)


def transposed_by_methods(source: Source, node: _Node, kinds: Kinds) -> tuple[Source, _Node] | None:
    """The text where what `node`, or what follows as a part of it, reads of a tensor from outside as `t.T` beside `t` is
    `t.t()`, and `node` of it; None where there is nothing of the kind. Of more than two dimensions torch has deprecated `t.T`."""
    region = _region(source, node)
    own: set[str] = set(bound(region))
    parts = [each for one in region for each in ast.walk(one)]
    views = [
        each
        for each in parts
        if isinstance(each, ast.Attribute)
        and each.attr in METHODS
        and isinstance(each.ctx, ast.Load)
        and (dotted(each.value) or "").split(".")[0] not in own | {""}
    ]
    owners = {id(each.value) for each in views}
    plain = {dotted(each) for each in parts if isinstance(each, ast.expr) and id(each) not in owners}
    swaps = []
    for each in views:
        kind = kinds.of(each.value)
        if (
            dotted(each.value) in plain
            and kind.what == "tensor"
            and (each.attr == "mT" or (kind.rank or 0) < 3)
        ):
            swaps.append(source.swap(each, f"{source.of(each.value)}{METHODS[each.attr]}"))
    if not swaps:
        return None
    changed, begin = Source(replaced(source.text, swaps)), source.start(node)
    same = (each for each in ast.walk(changed.tree) if isinstance(each, type(node)))
    return changed, next(each for each in same if changed.start(each) == begin)


def transposed_by_method(place: AttributeRead, context: RewriteContext) -> Fix | Refusal:
    """`t.T` -> `t.t()`, the same view, in a function that an operator traces."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Attribute):
            raise Refused("the attribute is not written out")
        rank = place.owner.rank if isinstance(place.owner, Tensor) else None
        if node.attr == "T" and (rank or 0) > 2:
            raise Refused(f"`{draft.source.of(node)}` turns the order of more than two dimensions round")
        text = f"{draft.source.of(node.value)}{METHODS[node.attr]}"
        swap = draft.source.swap(node, text)
        return draft.replace(f"Use `{METHODS[node.attr]}`", [swap], Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _region(source: Source, node: ast.AST) -> list[ast.AST]:
    """What becomes the operator's functions."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if not isinstance(node, ast.If):
        return [node]
    arms: list[ast.AST] = [*node.body, *node.orelse]
    if exits([node]) == {"falls"}:
        return arms
    # What follows becomes part of an arm.
    block, index = source.block_of(node)
    return [*arms, *block[index + 1 :]]
