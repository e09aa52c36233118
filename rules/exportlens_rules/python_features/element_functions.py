"""Python functions that run on each element of a tensor."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.calls.element_functions import operators_for_function
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class ElementFunctions(CallOf):
    """A function of Python runs on each element of a tensor.

    ## What it does
    Finds `t.apply_(f)` and `t.map_(other, f)` on traced tensors.

    ## Why it matters
    While tracing, tensors have no elements that Python could compute with: both modes fail, strict tracing because it has no node for
    a function of Python, non-strict tracing with "Cannot access data pointer of Tensor". Operators compute all elements at once.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.apply_.html
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.map_.html
    """

    code = "EXL344"
    name = "element-functions"
    outcome = Outcome(FAILS, FAILS)
    callees = ("torch.Tensor.apply_", "torch.Tensor.map_")
    wrong = (
        "runs a function of Python on each element, which no tensor has while tracing: torch.export fails."
    )
    advice = "Write it with operators, which compute all elements at once."
    examples = (
        Example(
            bad="""
def forward(self, x):
    y = x.clone()
    y[..., 0].apply_(lambda v: (v - 1) % 3 + 1)
    return y
""",
            good="""
def forward(self, x):
    y = x.clone()
    y[..., 0].copy_((y[..., 0] - 1) % 3 + 1)
    return y
""",
        ),
        Example(
            bad="""
def forward(self, x):
    y = x.clone()
    y.map_(x, lambda a, b: a + 2 * b)
    return y
""",
            good="""
def forward(self, x):
    y = x.clone()
    y.copy_(y + 2 * x)
    return y
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return operators_for_function(report.place, context)
