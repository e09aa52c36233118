"""Dynamic dimensions that the code makes equal."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place, SizesMeet
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.exporting.suggested_shapes import tie_dims
from exportlens.rule import Example, Report, Rule


class DimensionsTied(Rule):
    """Two dimensions are declared independent, and the code makes them equal.

    ## What it does
    Finds elementwise arithmetic on tensors whose sizes at one position are declared by Dims of different names.

    ## Why it matters
    Adding them makes the sizes equal, which the two Dims deny: export fails with "Constraints violated" and suggests
    to declare both with one Dim.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html#expressing-dynamism
    """

    code = "EXL418"
    name = "dimensions-tied"
    outcome = Outcome(FAILS, FAILS)
    places = (SizesMeet,)
    of_declared_sizes = True
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, y):
        return x + y


def program():
    rows = torch.export.Dim("rows")
    lines = torch.export.Dim("lines")
    shapes = {"x": {0: rows}, "y": {0: lines}}
    return torch.export.export(M(), (torch.randn(3, 4), torch.randn(3, 4)), dynamic_shapes=shapes)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, y):
        return x + y


def program():
    rows = torch.export.Dim("rows")
    shapes = {"x": {0: rows}, "y": {0: rows}}
    return torch.export.export(M(), (torch.randn(3, 4), torch.randn(3, 4)), dynamic_shapes=shapes)
""",
            inputs="(torch.randn(3, 4), torch.randn(3, 4))",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, SizesMeet)
        left, right = place.left.bounds, place.right.bounds
        if left is not None and right is not None:
            yield self.report(
                place,
                f"`{place.left.origin}` and `{place.right.origin}` must be equal here, and are declared by two Dims, "
                f'{left.name!r} and {right.name!r}: export ends in "Constraints violated". Declare both with one Dim.',
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, SizesMeet)
        left, right = report.place.left.bounds, report.place.right.bounds
        assert left is not None and right is not None
        try:
            return tie_dims({right.name: ast.Name(left.name)}, context)
        except Refused as refused:
            return Refusal(str(refused))
