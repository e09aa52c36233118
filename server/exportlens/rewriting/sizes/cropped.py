"""`x[a:b, c:d]` whose slices begin at numbers from data -> `x[a:b][:, c:d]`: strict tracing of torch 2.13 loses one of two such
starts in one subscript, and none in two."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import ItemRead
from exportlens.inference.values import Sequence as ValueSequence
from exportlens.inference.values import Shape, Slice, Tensor, TensorScalar, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused


def opened(key: Value) -> list[int]:
    """Which parts of an index are slices that begin at a number from data."""
    parts = key.items if isinstance(key, ValueSequence) and key.items is not None else [key]
    return [index for index, part in enumerate(parts) if isinstance(part, Slice) and is_of_data(part.lower)]


def is_of_data(number: Value | None) -> bool:
    return number is not None and all(
        isinstance(each, TensorScalar)
        or (isinstance(each, Shape) and each.unbacked)
        or (isinstance(each, Tensor) and each.origin != "constant")
        for each in options(number)
    )


def cut_one_by_one(place: ItemRead, context: RewriteContext) -> Fix | Refusal:
    """The fix that cuts one dimension after the other."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
            raise Refused("the index is not written out")
        if not isinstance(node.ctx, ast.Load):
            raise Refused("the part is read and written at once: write `y[a:b, c:d] = y[a:b, c:d] + ...`")
        parts, opens = node.slice.elts, opened(place.key)
        if not all(_keeps_or_takes(each) for each in parts):
            raise Refused("a tensor is among the indices")
        first = [":" if index in opens[1:] else source.of(each) for index, each in enumerate(parts)]
        text = f"{source.of(node.value)}[{', '.join(_trimmed(first))}]"
        for index in opens[1:]:
            behind = (
                [":" for each in parts[index + 1 :] if _keeps(each)] if _has_ellipsis(parts[:index]) else []
            )
            before = ["..." if _is_ellipsis(each) else ":" for each in parts[:index] if _keeps(each)]
            text += f"[{', '.join([*before, source.of(parts[index]), *behind])}]"
        return draft.replace(
            "Cut one dimension after the other",
            [source.swap(node, text)],
            Applicability.SAFE,
            uses_torch=False,
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _trimmed(parts: list[str]) -> list[str]:
    """The parts without the `:` behind them that change nothing; behind an ellipsis each counts."""
    if "..." in parts:
        return parts
    while len(parts) > 1 and parts[-1] == ":":
        parts = parts[:-1]
    return parts


def _keeps_or_takes(part: ast.expr) -> bool:
    return isinstance(part, (ast.Slice, ast.Constant)) or (
        isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant)
    )


def _keeps(part: ast.expr) -> bool:
    """Whether a part of an index leaves, or makes, a dimension."""
    return isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, Ellipsis))


def _is_ellipsis(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is Ellipsis


def _has_ellipsis(parts: Sequence[ast.expr]) -> bool:
    return any(map(_is_ellipsis, parts))
