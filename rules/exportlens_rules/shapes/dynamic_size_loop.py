"""Python loops over a dimension that is declared dynamic."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Iteration, Place
from exportlens.inference.values import Shape, Tensor, Value
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.loops.rows import rewrite_rows
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words

_MODEL = """
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        {body}


def program():
    size = torch.export.Dim("size", min=2, max=64)
    return torch.export.export(M(), (torch.randn(4, 8),), dynamic_shapes={{"x": {{0: size}}}})
"""


class DynamicSizeLoop(Rule):
    """A Python loop runs over the rows of a tensor, whose number is declared dynamic.

    ## What it does
    Finds `for row in x`, `[f(row) for row in x]`, `for i in range(x.shape[0])` and unpacking where `dynamic_shapes`
    declares the number of rows by a Dim.

    ## Why it matters
    Tracing unrolls the loop for the rows of the example, which makes their number a constant: export fails with
    "Constraints violated". Work on the whole tensor at once, or let torch's `map` and `scan` run over the rows. With a
    static size the loop is fine.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html#expressing-dynamism
    - https://docs.pytorch.org/docs/stable/higher_order_ops/index.html
    """

    code = "EXL422"
    name = "dynamic-size-loop"
    outcome = Outcome(FAILS, FAILS)
    places = (Iteration, Conversion)
    of_declared_sizes = True
    examples = (
        Example(
            bad=_MODEL.format(body="return torch.stack([row / row.sum() for row in x])"),
            good=_MODEL.format(body="return torch._higher_order_ops.map(lambda row: row / row.sum(), x)"),
            inputs="(torch.randn(4, 8),)",
        ),
        Example(
            bad=_MODEL.format(body="return torch.stack([x[i] * 2 for i in range(x.shape[0])])"),
            good=_MODEL.format(body="return x * 2"),
            inputs="(torch.randn(4, 8),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, (Iteration, Conversion))
        size = _rows(place.iterable) if isinstance(place, Iteration) else _ranged(place)
        if size is not None and size.bounds is not None and size.bounds.low < size.bounds.high:
            yield self.report(
                place,
                f"`{words(place.node)}`: `{size.origin}` is dynamic, Dim {size.bounds.name!r} from {size.bounds.words}, "
                'and tracing unrolls this for one number of rows: export ends in "Constraints violated". Compute on the '
                "whole tensor, or use torch's map or scan.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, (Iteration, Conversion))
        return rewrite_rows(report.place, context)


def _rows(value: Value) -> Shape | None:
    """The declared number of rows of a tensor."""
    size = value.dims[0] if isinstance(value, Tensor) and value.dims else None
    return size if isinstance(size, Shape) else None


def _ranged(place: Conversion) -> Shape | None:
    return place.value if place.to == "range" and isinstance(place.value, Shape) else None
