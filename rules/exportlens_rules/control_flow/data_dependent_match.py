"""`match` on tensor data."""

from __future__ import annotations

from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision


class DataDependentMatch(Decision):
    """A `match` statement compares a value from tensor data with its cases.

    ## What it does
    Finds `match` on a tensor or on a number read out of one.

    ## Why it matters
    Each case is a decision on data, which tracing cannot take.

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL108"
    name = "data-dependent-match"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("match",)
    words = "`match`"
    advice = "Nest torch.cond, or select from stacked results by index."
    examples = (
        Example(
            bad="""
def forward(self, x):
    match x.sum(1).argmax().item():
        case 0:
            return x + 1
        case _:
            return x - 1
""",
            good="""
def forward(self, x):
    return torch.cond(x.sum(1).argmax() == 0, lambda x: x + 1, lambda x: x - 1, (x,))
""",
        ),
    )
