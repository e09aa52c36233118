"""`t.retain_grad()` in forward."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.checks.guards import not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class RetainGrad(CallOf):
    """A tensor of the program is told to keep its gradient.

    ## What it does
    Finds `retain_grad()` on traced tensors.

    ## Why it matters
    Strict tracing does not support it, and a program for inference has no gradients.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html
    """

    code = "EXL323"
    name = "retain-grad"
    outcome = Outcome(FAILS, OK)
    callees = ("torch.Tensor.retain_grad",)
    wrong = "keeps a gradient inside of the program: strict tracing fails."
    advice = "Guard it with `if self.training`."
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
        y = self.layer(x)
        y.retain_grad()
        return y
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if self.training:
            y.retain_grad()
        return y
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        return not_while_compiling(report.place, context, "`retain_grad()`")
