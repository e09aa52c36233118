"""Export calls that fix every size."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ExportCall, Place
from exportlens.inference.values import Const, Sequence, Tensor
from exportlens.outcome import BAKED, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.exporting.export_calls import add_dynamic_shapes
from exportlens.rule import Example, Report, Rule


class StaticBatch(Rule):
    """An export without `dynamic_shapes` fixes the sizes of its example inputs.

    ## What it does
    Finds calls of `torch.export.export` without `dynamic_shapes`, where an example input is a tensor.

    ## Why it matters
    The program accepts exactly the sizes of the example: with another batch it raises "Guard failed". If
    that is meant, ignore this line.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html#expressing-dynamism
    """

    code = "EXL412"
    name = "static-batch"
    outcome = Outcome(BAKED, BAKED)
    places = (ExportCall,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1


def program():
    return torch.export.export(M(), (torch.randn(2, 4),))
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1


def program():
    batch = torch.export.Dim("batch")
    return torch.export.export(M(), (torch.randn(2, 4),), dynamic_shapes={"x": {0: batch}})
""",
            inputs="(torch.randn(5, 4),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, ExportCall)
        shapes = place.arguments.get("dynamic_shapes")
        given = shapes is not None and not (isinstance(shapes, Const) and shapes.value is None)
        inputs = place.arguments.get("args")
        if given or not isinstance(inputs, Sequence) or inputs.items is None:
            return
        if any(isinstance(item, Tensor) and item.rank != 0 for item in inputs.items):
            yield self.report(
                place,
                "This export fixes every size of its example inputs: another batch size raises when the "
                "program runs. "
                "Give dynamic_shapes with a Dim for what varies.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, ExportCall)
        return add_dynamic_shapes(report.place, context)
