"""`torch._check` and `torch._assert` on a tensor."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.calls.old_calls import check_of_data
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_tensor


class CheckOnTensor(CallOf):
    """`torch._assert` or `torch._check` is given a tensor.

    ## What it does
    Finds `torch._assert(t, ...)` and `torch._check(t)` on tensors.

    ## Why it matters
    Both ask for the truth of the condition while tracing. They are for sizes and symbolic numbers; the
    check of a tensor's value is `torch._assert_async`.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch._assert.html
    """

    code = "EXL410"
    name = "check-on-tensor"
    outcome = Outcome(FAILS, FAILS)
    callees = ("torch._assert", "torch._check", "torch._check_value")
    wrong = "asks a tensor for its truth while tracing."
    advice = "Use torch._assert_async(condition, message)."
    examples = (
        Example(
            bad="""
def forward(self, x):
    torch._assert((x * x).sum() >= 0, "negative")
    return x + 1
""",
            good="""
def forward(self, x):
    torch._assert_async((x * x).sum() >= 0, "negative")
    return x + 1
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return is_tensor(place.argument(0, "cond") or place.argument(0, "condition"))

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return check_of_data(report.place, context)
