"""Tensors made with `requires_grad=True` in forward."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.checks.guards import gradients_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class RequiresGradCreation(Rule):
    """A tensor is made with `requires_grad=True` while tracing.

    ## What it does
    Finds `torch.tensor(..., requires_grad=True)`, `torch.zeros(..., requires_grad=True)` and the like in
    forward.

    ## Why it matters
    Strict tracing does not support leaves with gradients that are made inside of the program. A tensor that
    should learn is a Parameter made in `__init__`; any other does not need the flag.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html
    """

    code = "EXL210"
    name = "requires-grad-creation"
    outcome = Outcome(FAILS, OK)
    places = (Call,)
    callees = ("torch.*",)
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + torch.zeros(4, requires_grad=True)
""",
            good="""
def forward(self, x):
    return x + torch.zeros(4)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        flag = place.kwargs.get("requires_grad")
        makes = place.name.rpartition(".")[0] == "torch" or place.name.startswith("torch.Tensor.new_")
        if makes and isinstance(flag, Const) and flag.value is True:
            yield self.report(
                place,
                f"`{words(place.node)}` makes a tensor with gradients inside of the program: strict "
                "tracing fails. "
                "Drop requires_grad, or make a Parameter in `__init__`.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        return gradients_not_while_compiling(report.place, context)
