"""Calls of F.pad in functions that an arm of torch.cond calls, written with torch.cat (see `padded_rows`)."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.finding import Edit
from exportlens.rewriting.arms.padded_rows import by_zeros_in_helper
from exportlens.rewriting.arms.picked_in_helpers import holds
from exportlens.rewriting.code.draft import Draft, Refused


def padded_in_helpers(draft: Draft, padded: Iterable[tuple[ast.FunctionDef, ast.Call]]) -> list[Edit]:
    """The edits that write the calls `padded`, each with the function around it, with torch.cat. Raises Refused."""
    made: list[Edit] = []
    for function, call in padded:
        chunk = next(each for each in draft.others() if holds(each, function))
        helper = Draft.of_chunk(chunk, draft.context)
        node = helper.source.find(call)
        helper.refuse_other_torch(node)
        taken = helper.taken(helper.source.tree)
        swaps = (
            by_zeros_in_helper(helper.source, node, draft.torch, taken)
            if isinstance(node, ast.Call)
            else None
        )
        if swaps is None:
            raise Refused(f"`{function.name}` pads rows of which data says how many there are")
        fix = helper.replace("Join with zeros", swaps, uses_torch=False)
        made += fix.edits
    return made
