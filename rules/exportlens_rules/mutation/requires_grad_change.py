"""`requires_grad_()` and `t.requires_grad = ...` in forward."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeWrite, Call, Place
from exportlens.inference.values import Const, Tensor
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.checks.guards import not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class RequiresGradChange(Rule):
    """`requires_grad` is changed while tracing.

    ## What it does
    Finds `t.requires_grad_()`, `module.requires_grad_(...)` and `t.requires_grad = ...` in code that is
    traced.

    ## Why it matters
    Strict tracing does not support it. Freeze parameters before export; gradients inside of forward are
    torch.func.grad's work.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html
    """

    code = "EXL209"
    name = "requires-grad-change"
    outcome = Outcome(FAILS, OK)
    places = (Call, AttributeWrite)
    callees = ("torch.Tensor.requires_grad_", "torch.nn.Module.requires_grad_")
    examples = (
        Example(
            bad="""
def forward(self, x):
    x.requires_grad_()
    return x * 2
""",
            good="""
def forward(self, x):
    return x * 2
""",
        ),
        Example(
            bad="""
def forward(self, x):
    y = x.detach()
    y.requires_grad = True
    return y * 2
""",
            good="""
def forward(self, x):
    y = x.detach()
    return y * 2
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        what = ""
        if isinstance(place, Call):
            given = place.argument(0, "requires_grad")
            off = isinstance(given, Const) and given.value is False and isinstance(place.receiver, Tensor)
            # What traced code makes has none to take away; parameters do.
            if not off or (isinstance(place.receiver, Tensor) and place.receiver.origin == "parameter"):
                what = words(place.node)
        elif (
            isinstance(place, AttributeWrite)
            and place.attr == "requires_grad"
            and isinstance(place.owner, Tensor)
        ):
            what = "requires_grad = ..."
        if what:
            yield self.report(
                place,
                f"`{what}` changes `requires_grad` while tracing: strict tracing fails. Do it before the "
                "export.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        return not_while_compiling(report.place, context)
