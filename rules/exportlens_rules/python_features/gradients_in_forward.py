"""`torch.autograd.grad` and `backward()` in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class GradientsInForward(CallOf):
    """Gradients are computed inside of forward.

    ## What it does
    Finds `torch.autograd.grad`, `Tensor.backward` and `torch.autograd.functional` in traced code.

    ## Why it matters
    Strict tracing does not support them.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
    """

    code = "EXL322"
    name = "gradients-in-forward"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "a program of torch.export has no backward of its own: compute the derivative where the model is called, "
        "or write it out as operators"
    )
    callees = (
        "torch.autograd.grad",
        "torch.autograd.backward",
        "torch.Tensor.backward",
        "torch.autograd.functional.jacobian",
        "torch.autograd.functional.hessian",
        "torch.autograd.functional.vjp",
        "torch.autograd.functional.jvp",
    )
    wrong = "computes gradients inside of the program: strict tracing fails."
    advice = "Export with strict=False, or write the derivative out."
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
        y = self.layer(x).sum()
        y.backward()
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
        return self.layer(x).sum()
""",
        ),
    )
