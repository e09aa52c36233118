"""`torch.utils.checkpoint` in forward."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.modules_in_forward import direct_call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class ActivationCheckpoint(CallOf):
    """Activation checkpointing while exporting.

    ## What it does
    Finds calls of `torch.utils.checkpoint.checkpoint` that are reached in traced code.

    ## Why it matters
    Checkpointing trades memory for time in training; a program for inference has no use for it, and strict
    tracing fails.

    ## References
    - https://docs.pytorch.org/docs/stable/checkpoint.html
    """

    code = "EXL320"
    name = "activation-checkpoint"
    outcome = Outcome(FAILS, OK)
    callees = (
        "torch.utils.checkpoint.checkpoint",
        "torch.utils.checkpoint.checkpoint_sequential",
    )
    wrong = "is for training: strict tracing fails."
    advice = "Call the module directly when `self.training` is false."
    examples = (
        Example(
            bad="""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=False)
""",
            good="""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if self.training:
            return checkpoint(self.layer, x, use_reentrant=False)
        return self.layer(x)
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return direct_call(report.place, context)
