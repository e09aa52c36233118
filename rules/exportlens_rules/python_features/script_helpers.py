"""`torch.jit.isinstance`, `torch.jit.fork`."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.plain_calls import builtin_isinstance
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class ScriptHelpers(CallOf):
    """Helpers of TorchScript are called while tracing.

    ## What it does
    Finds `torch.jit.isinstance`, `torch.jit.fork` and `torch.jit.wait` in traced code.
    `torch.jit.is_scripting()` and `torch.jit.annotate` are fine.

    ## Why it matters
    Strict tracing does not follow them.

    ## References
    - https://docs.pytorch.org/docs/stable/jit.html
    """

    code = "EXL319"
    name = "torchscript-helpers"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "what the helper does here for a scripted model may be needed elsewhere: use isinstance, or call the "
        "function directly, where nothing is scripted"
    )
    callees = (
        "torch.jit.isinstance",
        "torch.jit.fork",
        "torch.jit.wait",
    )
    wrong = "is TorchScript, which strict tracing does not follow."
    advice = "Use isinstance, or call the function directly."
    examples = (
        Example(
            bad="""
from typing import List

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        if torch.jit.isinstance(x, List[torch.Tensor]):
            return x[0]
        return x + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        if isinstance(x, list):
            return x[0]
        return x + 1
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if report.place.name == "torch.jit.isinstance":
            return builtin_isinstance(report.place, context)
        return Refusal(self.no_fix)
