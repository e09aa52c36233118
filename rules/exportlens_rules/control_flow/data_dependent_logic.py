"""`and`, `or`, `not` on tensors."""

from __future__ import annotations

from exportlens.inference.places import Truth
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision
from exportlens_rules.reading import is_tested


class DataDependentLogic(Decision):
    """`and`, `or` or `not` asks a tensor for its truth.

    ## What it does
    Finds `a and b`, `a or b` and `not a` whose operand comes from tensor data, outside of a condition that is
    reported already.

    ## Why it matters
    These operators are decisions of Python: they look at the left operand to know whether to evaluate the
    right one. `torch.logical_and`, `torch.logical_or` and `torch.logical_not` are part of the program.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.logical_and.html
    """

    code = "EXL106"
    name = "data-dependent-logic"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("and", "or", "not")
    words = "`and`, `or` or `not`"
    advice = "Use torch.logical_and, logical_or, logical_not (or &, |, ~)."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return (x.sum() > 0) and (x.mean() < 1)
""",
            good="""
def forward(self, x):
    return torch.logical_and(x.sum() > 0, x.mean() < 1)
""",
        ),
    )

    def applies(self, place: Truth) -> bool:
        return not is_tested(place)

    def message(self, place: Truth) -> str:
        return super().message(place).replace(self.words, f"`{place.context}`", 1)
