"""A comprehension or `filter` that keeps elements by tensor data."""

from __future__ import annotations

from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision


class DataDependentFilter(Decision):
    """A comprehension keeps or drops elements by the value of a tensor.

    ## What it does
    Finds `[... for ... if <tensor>]`.

    ## Why it matters
    How many elements remain depends on data; tracing needs to know. A boolean mask has a result of unknown
    size too, but as a tensor of the program.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.masked_select.html
    """

    code = "EXL107"
    name = "data-dependent-filter"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("filter",)
    words = "A comprehension filters"
    advice = "Select with a boolean mask: x[mask]."
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return torch.stack([row for row in x if row.sum() > -100])
""",
            good="""
def forward(self, x: torch.Tensor):
    return x[x.sum(1) > -100]
""",
        ),
    )
