"""Masks without dimensions: `x[m]` -> `x.unsqueeze(0)[m.unsqueeze(0)]`, the same row or none, and the same memory where it is written.

torch asks such a mask for its bool to know how many rows there are, which tracing cannot (measured on torch 2.13, both modes); a mask
with one element gives as many rows as it says.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import ItemRead, ItemWrite
from exportlens.inference.values import Tensor, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.sizes.number_indices import index_in_brackets


def is_one_mask(key: Value) -> bool:
    """Whether the only index is a mask without dimensions that comes from tensor data."""
    return all(
        isinstance(option, Tensor)
        and option.origin != "constant"
        and option.rank == 0
        and option.dtype == "bool"
        for option in options(key)
    )


def index_by_one_row(place: ItemRead | ItemWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that gives the tensor and its mask a dimension more."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node, _, _ = index_in_brackets(draft, place)
        if isinstance(node.slice, ast.NamedExpr):
            raise Refused("the mask is given a name inside of the index")
        owner, mask = primary(source.of(node.value)), primary(source.of(node.slice))
        text = f"{owner}.unsqueeze(0)[{mask}.unsqueeze(0)]"
        return draft.replace("Give the mask a dimension", [source.swap(node, text)], Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))
