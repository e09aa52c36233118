"""Tensor subclasses made in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class TensorSubclass(CallOf):
    """A tensor becomes an instance of a subclass while tracing.

    ## What it does
    Finds `t.as_subclass(...)` on traced tensors.

    ## Why it matters
    Non-strict tracing cannot give a traced tensor another class.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.as_subclass.html
    """

    code = "EXL608"
    name = "tensor-subclass"
    outcome = Outcome(OK, FAILS)
    no_fix = (
        "what the subclass does for the operators is not provable: hand on a plain tensor, and keep what it adds "
        "beside it"
    )
    callees = ("torch.Tensor.as_subclass",)
    wrong = "gives a traced tensor another class: non-strict tracing fails."
    advice = "Use plain tensors inside of the model."
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class Image(torch.Tensor):
    pass


class M(nn.Module):
    def forward(self, x):
        return x.as_subclass(Image) + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
    )
