"""Operators that have no rule for their result's shape."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.plain_calls import drawn_like
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import tensors_in

# Kernels of their own that read where the sizes are kept: strict tracing answers for them.
_READ_BY_A_KERNEL = ("torch.onnx.operators.shape_as_tensor", "torch._shape_as_tensor")


class UnsupportedByFakeTensors(CallOf):
    """An operator cannot run without data.

    ## What it does
    Finds `torch.linalg.lstsq`, `torch.nn.functional.ctc_loss` and `nn.CTCLoss`, `torch.combinations`, `random_`,
    nested tensors and `torch.onnx.operators.shape_as_tensor` (which strict mode takes) on traced tensors.

    ## Why it matters
    torch has no rule that says which shape their result has without looking at the data: both modes fail.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_fake_tensor.html
    """

    code = "EXL409"
    name = "operator-without-shape-rule"
    outcome = Outcome(FAILS, FAILS)
    of_optional_inputs = False
    callees = (
        "torch.linalg.lstsq",
        "torch.nn.functional.ctc_loss",
        "torch.ctc_loss",
        "torch.nn.CTCLoss",
        "torch.nn.modules.loss.CTCLoss",
        "torch.combinations",
        "torch.nested.nested_tensor",
        "torch.nested.as_nested_tensor",
        "torch.Tensor.random_",
        *_READ_BY_A_KERNEL,
    )
    wrong = "has no rule for its shape without data."
    advice = "Use another operator, or keep it out of the model that is exported."
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return torch.linalg.lstsq(x, x[:, :1]).solution
""",
            good="""
def forward(self, x: torch.Tensor):
    return torch.linalg.pinv(x) @ x[:, :1]
""",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return torch.nested.nested_tensor([x[0], x[1]]).to_padded_tensor(0)
""",
            good="""
def forward(self, x: torch.Tensor):
    return nn.utils.rnn.pad_sequence([x[0], x[1]], batch_first=True)
""",
        ),
        Example(
            bad="""
import torch
import torch.onnx.operators
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        return x + torch.onnx.operators.shape_as_tensor(x)[0]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        return x + x.size(0)
""",
            outcome=Outcome(OK, FAILS),
        ),
    )

    def outcome_of(self, place: Call) -> Outcome:
        return Outcome(OK, FAILS) if place.name in _READ_BY_A_KERNEL else self.outcome

    def applies(self, place: Call) -> bool:
        values = [place.receiver, *place.args, *place.kwargs.values()]
        return any(True for value in values if value is not None for _ in tensors_in(value))

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, Call)
        return drawn_like(report.place, context)
