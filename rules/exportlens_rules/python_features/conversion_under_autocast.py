"""A conversion of what torch.autocast computed in lower precision."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Tensor
from exportlens.outcome import OK, WRONG, Outcome
from exportlens.rewriting.calls.conversions import CONVERSIONS, by_type_as
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class ConversionUnderAutocast(Rule):
    """A tensor to which torch.autocast gave another dtype is converted.

    ## What it does
    Finds `.float()`, `.to(...)` and the like on what an operator computed in lower precision, since
    `torch.autocast("cpu")` is in force or was when it ran. `.type_as()` is not affected.

    ## Why it matters
    Strict tracing takes the tensor to be of the dtype that it has without autocast, and puts a check of
    that into the program, which raises at every call: "Tensor dtype mismatch! Expected: Float, Got:
    c10::BFloat16". Export itself reports nothing.

    ## References
    - https://docs.pytorch.org/docs/stable/amp.html
    """

    code = "EXL342"
    name = "conversion-under-autocast"
    outcome = Outcome(WRONG, OK)
    places = (Call,)
    callees = tuple(f"torch.Tensor.{name}" for name in sorted(CONVERSIONS))
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.layer(x)
        return y.float()
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.layer(x)
        return y.type_as(x)
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        with torch.autocast(device_type="cpu"):
            scores = torch.relu(x @ x.t()).sum(-1).to(torch.float64)
        return scores
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        with torch.autocast(device_type="cpu", enabled=False):
            scores = torch.relu(x @ x.t()).sum(-1).to(torch.float64)
        return scores
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if isinstance(place.receiver, Tensor) and place.receiver.recast:
            yield self.report(
                place,
                f"`{words(place.node)}` converts what torch.autocast computed in lower precision: the program of strict "
                "tracing expects another dtype there, and raises when it runs. Convert by `.type_as()`.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, Call)
        return by_type_as(report.place, context)
