"""`if` on the value of a tensor."""

from __future__ import annotations

from exportlens.inference.places import Truth
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision, leads_to_raise


class DataDependentIf(Decision):
    """An `if` statement asks a tensor, or a number read out of one, for its truth.

    ## What it does
    Finds `if` and `elif` whose condition comes from tensor data: a comparison of tensors, `.item()`,
    `.any()`, `torch.equal(...)`, a buffer used as a flag, a size such as `x[mask].shape[0]`. Conditions on
    shapes, ranks, `None`, `self.training` or configuration are fine and are not reported.

    ## Why it matters
    torch.export records one path through the code. Which path is right is only known when the model runs, so
    tracing stops with "Could not guard on data-dependent expression" or "Data-dependent branching".

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL101"
    name = "data-dependent-if"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("if",)
    words = "`if`"
    advice = "Rewrite with torch.cond, or with torch.where where both sides are cheap."
    examples = (
        Example(
            bad="""
def forward(self, x):
    if x.sum() > 0:
        return x + 1
    return x - 1
""",
            good="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
""",
        ),
        Example(
            bad="""
def forward(self, x):
    scale = 1.0
    if x.abs().max().item() > 2:
        scale = 0.5
    return x * scale
""",
            good="""
def forward(self, x):
    scale = torch.where(x.abs().max() > 2, 0.5, 1.0)
    return x * scale
""",
        ),
    )

    def applies(self, place: Truth) -> bool:
        return not leads_to_raise(place)
