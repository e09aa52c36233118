"""`torch.autograd.Variable(...)`."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.data_attribute import unwrap_variable
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class LegacyVariable(CallOf):
    """The wrapper of torch before 0.4.

    ## What it does
    Finds calls of `torch.autograd.Variable`.

    ## Why it matters
    Tensors and Variables have been one since torch 0.4: the call gives back its argument. Strict tracing does
    not know it and fails. This is the most common strict failure of older code.

    ## References
    - https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated
    """

    code = "EXL315"
    name = "legacy-variable"
    outcome = Outcome(FAILS, OK)
    callees = (
        "torch.autograd.Variable",
        "torch.autograd.variable.Variable",
    )
    wrong = "wraps a tensor in what torch had before 0.4: strict tracing fails."
    advice = "Use the tensor itself."
    examples = (
        Example(
            bad="""
from torch import nn
from torch.autograd import Variable


class M(nn.Module):
    def forward(self, x):
        return Variable(x) + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
        Example(
            bad="""
import torch
from torch import nn
from torch.autograd import Variable


class M(nn.Module):
    def forward(self, x):
        hidden = Variable(torch.zeros(3, 4), requires_grad=False)
        return hidden + x
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        hidden = torch.zeros(3, 4)
        return hidden + x
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return unwrap_variable(report.place, context)
