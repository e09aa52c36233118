"""`torch.tensor(data=...)`."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.data_by_name import data_without_name
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class DataByName(CallOf):
    """What a tensor is made of has a name: `torch.tensor(data=...)`.

    ## What it does
    Finds calls of `torch.tensor` whose data is an argument with a name.

    ## Why it matters
    Non-strict tracing looks at the first argument without a name, to see whether sizes of tensors are in it, and fails where there is none:
    "IndexError: tuple index out of range". The message names no line of the model's.

    ## References
    - `_override` in torch/_export/non_strict_utils.py
    - https://docs.pytorch.org/docs/stable/generated/torch.tensor.html
    """

    code = "EXL346"
    name = "data-by-name"
    outcome = Outcome(OK, FAILS)
    callees = ("torch.tensor",)
    wrong = "gives the data by name: non-strict tracing fails with an IndexError."
    advice = "Give it as the first argument."
    examples = (
        Example(
            bad="""
def forward(self, x):
    size = torch.tensor(data=[x.size(0), x.size(1)], dtype=torch.float)
    return x / size.sum()
""",
            good="""
def forward(self, x):
    size = torch.tensor([x.size(0), x.size(1)], dtype=torch.float)
    return x / size.sum()
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return "data" in place.kwargs

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return data_without_name(report.place, context)
