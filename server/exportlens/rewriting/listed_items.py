"""Lists that are made of a tensor, and of which only items are read: `counts = torch.bincount(x).tolist()`, `counts[i]`.

The tensor is kept, and each item read where it is used: torch cannot make a list whose length data tells.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Conversion
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.around import refuse_caught_index
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused


def items_of_listed(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`counts = torch.bincount(x)`, `counts[i].item()` for `counts = torch.bincount(x).tolist()`, `counts[i]`."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not all(isinstance(each, Tensor) and each.rank == 1 for each in options(place.value)):
            raise Refused("the items of the list may be lists")
        # What a call gives no one else writes to: the list held what it was at this line.
        made = (
            node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        )
        statement, function = source.enclosing_statement(node), source.enclosing_function(node)
        if (
            not isinstance(made, ast.Call)
            or function is None
            or not isinstance(statement, ast.Assign)
            or statement.value is not node
            or len(statement.targets) != 1
            or not isinstance(statement.targets[0], ast.Name)
        ):
            raise Refused("the list does not get a name where it is made")
        name = statement.targets[0].id
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
        items = [source.parents[each] for each in uses if each is not statement.targets[0]]
        if not items or not all(map(_is_read, items)):
            raise Refused(f"`{name}` is used as a list")
        for each in items:
            refuse_caught_index(source, each)
        swaps = [source.swap(node, source.of(made))]
        swaps += [source.swap(each, f"{source.of(each)}.item()") for each in items]
        return draft.replace(
            "Read the items where they are used", swaps, Applicability.SAFE, uses_torch=False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_read(node: ast.AST) -> bool:
    """Whether `node` reads one item of the list."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and not isinstance(node.slice, (ast.Slice, ast.Tuple))
    )
