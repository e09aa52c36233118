"""A tensor's `.data`, read while tracing."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeRead, Place
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.calls.data_attribute import detach_data
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.tensor_data import (
    asked_for,
    is_kept_on_tensor,
    is_write,
    makes_new,
    reads_data,
)
from exportlens_rules.reading import is_tested, words

_NEW = Outcome(WRONG, OK)
# What an `assert` looks at does not leave the program: strict tracing only loses the check. Neither does what another tensor is made like,
# nor what is only kept as an attribute of a tensor.
_LOOKED_AT = Outcome(OK, FAILS)


class TensorDataRead(Rule):
    """`.data` reaches a tensor behind autograd's and the tracer's back.

    ## What it does
    Finds `.data` of traced tensors, parameters and buffers, where its content is used. Uses that only look
    at shape, dtype or device (`x.data.size()`) are fine.

    ## Why it matters
    Non-strict tracing fails with "We found a fake tensor in the exported program constant's list" and names
    no line. Strict tracing reports success, but the program returns a FakeTensor or wrong numbers.
    `x.detach()` is the same tensor without gradients, and known to the tracer.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    code = "EXL201"
    name = "tensor-data-read"
    outcome = Outcome(WRONG, FAILS)
    places = (AttributeRead,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x.data * 2
""",
            good="""
def forward(self, x):
    return x.detach() * 2
""",
        ),
        Example(
            bad="""
from torch import nn
import torch


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.weight.data
""",
            good="""
from torch import nn
import torch


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.weight.detach()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x + x.data.new(3, 4).zero_()
""",
            good="""
def forward(self, x):
    return x + x.new_zeros(3, 4)
""",
            outcome=_NEW,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeRead)
        if not reads_data(place) or is_write(place):
            return
        like = asked_for(place)
        if like == "to":
            return
        yield self.report(
            place,
            f"`{words(place.node)}` reads a tensor behind the tracer's back: the exported program gets a "
            "fake "
            f"tensor. Use `{words(place.node).removesuffix('.data')}.detach()`.",
            outcome=_NEW
            if makes_new(place)
            else _LOOKED_AT
            if like or is_tested(place, anywhere=True) or is_kept_on_tensor(place)
            else None,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, AttributeRead)
        return detach_data(report.place, context)
