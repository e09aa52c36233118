"""`if` on tensor data that leads to `raise`."""

from __future__ import annotations

from exportlens.inference.places import Truth
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision, leads_to_raise


class DataDependentRaise(Decision):
    """A check raises an exception depending on tensor data.

    ## What it does
    Finds `if <tensor>: raise ...`, the usual way to validate inputs.

    ## Why it matters
    An exported program has no exceptions of Python: whether to raise is not known while tracing, and export
    fails. `torch._assert_async` puts the check into the program and keeps the message.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL102"
    name = "data-dependent-raise"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("if",)
    words = "`raise` behind an `if`"
    advice = "Check with torch._assert_async(condition, message), which stays in the program."
    examples = (
        Example(
            bad="""
def forward(self, x):
    if (x * x).sum() < 0:
        raise ValueError("negative")
    return x + 1
""",
            good="""
def forward(self, x):
    torch._assert_async((x * x).sum() >= 0, "negative")
    return x + 1
""",
        ),
    )

    def applies(self, place: Truth) -> bool:
        return leads_to_raise(place)
