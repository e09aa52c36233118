"""The builtins `any` and `all` over tensors."""

from __future__ import annotations

from exportlens.inference.places import Truth
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision


class DataDependentAny(Decision):
    """The builtins `any(...)` or `all(...)` ask tensors for their truth.

    ## What it does
    Finds Python's own `any` and `all` over tensors or over numbers read out of tensors. The tensor methods
    `x.any()` and `x.all()` are fine.

    ## Why it matters
    The builtins stop at the first decisive element, so they look at data while tracing.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.any.html
    """

    code = "EXL109"
    name = "data-dependent-any"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("any", "all", "any/all")
    words = "`any`/`all`"
    advice = "Stack the conditions and use torch.any or torch.all."
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    positive = any(row.sum() > 0 for row in x)
    return x * 2, positive
""",
            good="""
def forward(self, x: torch.Tensor):
    positive = torch.any(x.sum(1) > 0)
    return x * 2, positive
""",
        ),
    )

    def message(self, place: Truth) -> str:
        if place.context in ("any", "all"):
            return super().message(place).replace(self.words, f"`{place.context}`", 1)
        return super().message(place)
