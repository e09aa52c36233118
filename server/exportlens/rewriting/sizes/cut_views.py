"""`x[:, a:b].view(-1, 3, 4)` whose cut data bounds -> `.reshape(...)`: the same where eager has a view at all.

A view of a cut whose width is not known stays one of the whole to torch 2.13: it asks whether the whole width can be split so, or takes
the cut for the whole. `.reshape` decides that when the program runs. One row is contiguous, so that its cut is fine.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import ItemRead
from exportlens.inference.values import Sequence as ValueSequence
from exportlens.inference.values import Slice, Tensor
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.sizes.cropped import is_of_data


def is_narrowed_behind(place: ItemRead) -> bool:
    """Whether data bounds a slice that stands behind one of another dimension."""
    parts = (
        place.key.items
        if isinstance(place.key, ValueSequence) and place.key.items is not None
        else [place.key]
    )
    if isinstance(place.owner, Tensor) and place.owner.rank == 1:
        return False
    cuts = [at for at, part in enumerate(parts) if isinstance(part, Slice) and _is_bounded(part)]
    return any(isinstance(before, Slice) or _is_ellipsis(before) for at in cuts for before in parts[:at])


def view_of(node: ast.AST, around: Sequence[ast.AST]) -> ast.Call | None:
    """The call `x[:, a:b].view(-1, n)` whose first size is open and whose others are numbers above one, or are not written out."""
    match around[:2]:
        case [ast.Attribute(value=owner, attr="view") as method, ast.Call(func=function) as call] if (
            owner is node and function is method and not call.keywords
        ):
            sizes = call.args
            if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
                sizes = sizes[0].elts
            if len(sizes) > 1 and ast.unparse(sizes[0]) == "-1" and any(map(_splits, sizes[1:])):
                return call
    return None


def reshape_cut(place: ItemRead, context: RewriteContext) -> Fix | Refusal:
    """The fix that writes `.reshape` for `.view`."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        call = view_of(node, list(draft.source.ancestors(node)))
        if call is None or not isinstance(call.func, ast.Attribute):
            raise Refused("the view is not a plain call")
        text = f"{draft.source.of(call.func.value)}.reshape"
        return draft.replace(
            "Use `.reshape`",
            [draft.source.swap(call.func, text)],
            Applicability.SAFE,
            uses_torch=False,
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_bounded(part: Slice) -> bool:
    return part.step is None and (is_of_data(part.lower) or is_of_data(part.upper))


def _is_ellipsis(part: object) -> bool:
    return getattr(part, "value", None) is Ellipsis


def _splits(size: ast.expr) -> bool:
    return not (isinstance(size, ast.Constant) and size.value == 1)
