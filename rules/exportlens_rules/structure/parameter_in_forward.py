"""Parameters made in forward."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.modules_in_forward import plain_for_parameter
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class ParameterInForward(CallOf):
    """A Parameter is made while tracing.

    ## What it does
    Finds `nn.Parameter(...)` in traced code.

    ## Why it matters
    Strict tracing fails. A Parameter that is made in forward learns nothing in eager either.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html
    """

    code = "EXL604"
    name = "parameter-in-forward"
    outcome = Outcome(FAILS, OK)
    callees = (
        "torch.nn.Parameter",
        "torch.nn.parameter.Parameter",
    )
    wrong = "makes a Parameter while tracing: strict tracing fails."
    advice = "Make it in `__init__`, or use a plain tensor."
    examples = (
        Example(
            bad="""
def forward(self, x):
    weight = nn.Parameter(torch.ones(4))
    return x * weight
""",
            good="""
def forward(self, x):
    weight = torch.ones(4)
    return x * weight
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return plain_for_parameter(report.place, context)
