"""`resize_` and relatives."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.sizes import new_for_resized
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class ResizeInPlace(CallOf):
    """A tensor is resized in place.

    ## What it does
    Finds `resize_` and `resize_as_` on traced tensors.

    ## Why it matters
    Strict tracing does not support them; the result may hold uninitialised memory in eager as well.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.resize_.html
    """

    code = "EXL208"
    name = "resize-in-place"
    outcome = Outcome(FAILS, OK)
    callees = ("torch.Tensor.resize_", "torch.Tensor.resize_as_")
    wrong = "resizes a tensor in place: strict tracing does not support it."
    advice = "Use reshape, or allocate a tensor of the size that you need."
    examples = (
        Example(
            bad="""
def forward(self, x):
    y = x * 1
    y.resize_(4, 3)
    return y
""",
            good="""
def forward(self, x):
    y = x * 1
    return y.reshape(4, 3)
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return new_for_resized(report.place, context)

    def applies(self, place: Call) -> bool:
        return place.receiver is not None
