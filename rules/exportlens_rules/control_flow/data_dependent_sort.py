"""Python's own sorting of tensors."""

from __future__ import annotations

from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.control_flow.decision import Decision


class DataDependentSort(Decision):
    """`sorted`, `list.sort` or `min`/`max` with a key orders tensors by their data.

    ## What it does
    Finds Python's sorting over tensors or numbers read out of them.

    ## Why it matters
    Sorting compares, and each comparison is a decision on data. `torch.sort` is one operator of the program.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.sort.html
    """

    code = "EXL111"
    name = "data-dependent-sort"
    outcome = Outcome(FAILS, FAILS)
    contexts = ("sort",)
    words = "Sorting in Python"
    advice = "Use torch.sort, torch.argsort or torch.topk."
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    rows = sorted([x[0].sum(), x[1].sum()])
    return x + rows[0]
""",
            good="""
def forward(self, x: torch.Tensor):
    rows = torch.sort(torch.stack([x[0].sum(), x[1].sum()])).values
    return x + rows[0]
""",
        ),
    )
