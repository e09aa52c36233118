"""Chained comparisons and `in` on tensors."""

from __future__ import annotations

from exportlens.inference.places import Truth
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision
from exportlens_rules.reading import is_tested


class DataDependentComparison(Decision):
    """`a < t < b` or `x in tensor` decides on tensor data.

    ## What it does
    Finds chained comparisons and membership tests on tensors.

    ## Why it matters
    `a < t < b` is `a < t and t < b`, and `in` compares until it finds a match: both take a decision on the
    way.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.isin.html
    """

    code = "EXL110"
    name = "data-dependent-comparison"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("compare", "in")
    words = "A chained comparison or `in`"
    advice = "Write (a < t) & (t < b), or torch.isin."
    examples = (
        Example(
            bad="""
def forward(self, x):
    inside = -100 < x.sum() < 100
    return x, inside
""",
            good="""
def forward(self, x):
    total = x.sum()
    inside = (-100 < total) & (total < 100)
    return x, inside
""",
        ),
    )

    def applies(self, place: Truth) -> bool:
        return not is_tested(place)
