"""`bool(t)`."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision


class TensorToBool(Decision):
    """`bool(...)` of a tensor.

    ## What it does
    Finds `bool(t)` on tensors and on numbers read out of them.

    ## Why it matters
    Non-strict tracing has to answer with True or False and cannot. Strict tracing keeps it symbolic, until
    an `if` uses it.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL114"
    name = "tensor-to-bool"
    outcome = Outcome(OK, FAILS)
    contexts = ("bool",)
    words = "`bool()`"
    advice = "Keep the tensor: t.bool(), t != 0."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x * bool(x.sum() > 0)
""",
            good="""
def forward(self, x):
    return x * (x.sum() > 0)
""",
        ),
    )
