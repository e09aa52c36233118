"""`torch.utils.checkpoint` in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

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
    no_fix = (
        "what checkpointing saves in training may be needed: call the function directly where "
        "`torch.compiler.is_exporting()`, or export in eval mode with checkpointing off"
    )
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
