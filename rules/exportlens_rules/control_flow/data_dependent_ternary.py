"""`a if t else b` on the value of a tensor."""

from __future__ import annotations

from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision


class DataDependentTernary(Decision):
    """A conditional expression asks a tensor for its truth.

    ## What it does
    Finds `a if condition else b` whose condition comes from tensor data.

    ## Why it matters
    As with an `if` statement, tracing cannot know which side the program needs and stops.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.where.html
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL105"
    name = "data-dependent-ternary"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("ternary",)
    words = "A conditional expression"
    advice = "Use torch.where, or torch.cond where a side is costly."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + 1 if x.mean() > 0 else x - 1
""",
            good="""
def forward(self, x):
    return torch.where(x.mean() > 0, x + 1, x - 1)
""",
        ),
    )
