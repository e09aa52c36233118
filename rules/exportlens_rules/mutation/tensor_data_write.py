"""A tensor's `.data`, written in place while tracing."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeRead, Place
from exportlens.outcome import FAILS, WRONG, Outcome
from exportlens.rewriting.calls.data_attribute import detach_data
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.tensor_data import is_write, reads_data
from exportlens_rules.reading import words


class TensorDataWrite(Rule):
    """A write through `.data` is lost.

    ## What it does
    Finds `t.data[i] = v`, `t.data.mul_(2)`, `p.data.copy_(u)` and `t.data += 1`.

    ## Why it matters
    The tracer does not see the write. Strict tracing exports a program without it, that computes other
    numbers than eager and says nothing; non-strict tracing fails.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    code = "EXL202"
    name = "tensor-data-write"
    outcome = Outcome(WRONG, FAILS)
    places = (AttributeRead,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    y = x * 1
    y.data.mul_(2)
    return y
""",
            good="""
def forward(self, x):
    y = x * 1
    return y.mul(2)
""",
        ),
        Example(
            bad="""
def forward(self, x):
    y = x.clone()
    y.data[0] = 5
    return y
""",
            good="""
def forward(self, x):
    y = x.clone()
    y[0] = 5
    return y
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 3.0))

    def forward(self, x):
        self.weight.data.clamp_(0, 1)
        return x * self.weight
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 3.0))

    def forward(self, x):
        return x * self.weight.clamp(0, 1)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeRead)
        if reads_data(place) and is_write(place):
            yield self.report(
                place,
                f"A write through `{words(place.node)}` is not seen by the tracer: the exported program "
                "runs without "
                "it. Write to the tensor itself, out of place or under torch.no_grad().",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, AttributeRead)
        return detach_data(report.place, context)
