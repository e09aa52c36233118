"""`uniform_` with `from`."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class UniformFrom(CallOf):
    """`uniform_` is given its bound by the keyword `from`.

    ## What it does
    Finds `t.uniform_(**{"from": a, "to": b})`.

    ## Why it matters
    `from` is a word of Python, and strict tracing writes code with it. Positional arguments mean the same.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.uniform_.html
    """

    code = "EXL510"
    name = "uniform-from"
    outcome = Outcome(FAILS, OK)
    no_fix = "what else the dict of arguments holds is not provable: pass the bounds by position, as `uniform_(a, b)`"
    callees = ("torch.Tensor.uniform_",)
    wrong = "passes `from` by keyword: strict tracing fails."
    advice = "Pass the bounds by position: t.uniform_(a, b)."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + torch.empty(4).uniform_(**{"from": 0, "to": 1})
""",
            good="""
def forward(self, x):
    return x + torch.empty(4).uniform_(0, 1)
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return "from" in place.kwargs
