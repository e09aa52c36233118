"""Operators that need to know a size which depends on data."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.even_steps import steps_by_arange
from exportlens.rewriting.sizes.open_differences import differences_by_slices
from exportlens.rewriting.sizes.squeezed_anew import squeezed_anew
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import promises_sizes
from exportlens_rules.shapes.open_sizes import CALLEES, needs_the_size


class OperatorOnOpenSize(CallOf):
    """An operator has to know a size that depends on tensor data.

    ## What it does
    Finds operators and layers that need a size which a mask, `nonzero`, `unique` and the like leave to the data. Most
    take such tensors. `chunk`, `split`, `unbind` and `diff` along that dimension do not, nor do `squeeze_`, `logsumexp`, `roll`, `cdist`, `cummax`,
    `torch.fft`, `linspace`, instance normalization, recurrent and transformer layers over such a sequence, and others.

    ## Why it matters
    They decide by the size how to compute, and the size is not known while tracing.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL408"
    name = "operator-on-data-dependent-size"
    outcome = Outcome(FAILS, FAILS)
    callees = CALLEES
    wrong = "decides by a size that depends on tensor data."
    advice = "Pad to a size that is known, or compute with a mask."
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return x[x > 0].chunk(2)[0]
""",
            good="""
def forward(self, x: torch.Tensor):
    return x.clamp(min=0).chunk(2)[0]
""",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    kept = x[x[:, 0] > -100]
    return torch.cdist(kept, kept)
""",
            good="""
def forward(self, x: torch.Tensor):
    return torch.cdist(x, x)
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        kept = x[x[:, 0] > -100]
        return self.rnn(kept.unsqueeze(0))[0]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        kept = x * (x[:, :1] > -100)
        return self.rnn(kept.unsqueeze(0))[0]
""",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    kept = x[x[:, 0] > -100]
    return kept * torch.linspace(0, 1, kept.shape[0])[:, None]
""",
            good="""
def forward(self, x: torch.Tensor):
    kept = x[x[:, 0] > -100]
    count = kept.shape[0]
    return kept * (torch.arange(count) / (count - 1))[:, None]
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return needs_the_size(place) and not promises_sizes(place)

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, Call)
        if report.place.name == "torch.linspace":
            return steps_by_arange(report.place, context)
        if report.place.name in ("torch.diff", "torch.Tensor.diff"):
            return differences_by_slices(report.place, context)
        if report.place.name == "torch.Tensor.squeeze_":
            return squeezed_anew(report.place, context)
        return Refusal(
            "which size is the largest that may come is for you to say: pad to it, or weigh what is left out with zero"
        )
