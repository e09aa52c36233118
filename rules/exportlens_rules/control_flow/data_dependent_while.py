"""`while` on the value of a tensor."""

from __future__ import annotations

from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision


class DataDependentWhile(Decision):
    """A `while` loop runs until tensor data says stop.

    ## What it does
    Finds `while` loops whose condition comes from tensor data.

    ## Why it matters
    How often the loop runs is only known when the model runs; tracing cannot unroll it. `while_loop` keeps
    the loop in the program.

    ## References
    - https://docs.pytorch.org/docs/stable/higher_order_ops/index.html
    """

    code = "EXL103"
    name = "data-dependent-while"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("while",)
    words = "`while`"
    advice = "Rewrite with torch._higher_order_ops.while_loop."
    examples = (
        Example(
            bad="""
def forward(self, x):
    while x.abs().sum() > 1:
        x = x * 0.5
    return x
""",
            good="""
def forward(self, x):
    from torch._higher_order_ops import while_loop

    return while_loop(lambda x: x.abs().sum() > 1, lambda x: (x * 0.5,), (x,))[0]
""",
        ),
    )
