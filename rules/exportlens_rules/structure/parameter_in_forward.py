"""Parameters made in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

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
    no_fix = (
        "whether the tensor shall be trained is for you to say: make the Parameter in `__init__`, or use the "
        "tensor as it is"
    )
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
