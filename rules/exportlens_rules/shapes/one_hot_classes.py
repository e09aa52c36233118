"""`one_hot` without a number of classes that is known."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Const
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.class_numbers import compared_with_range
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_data, is_tensor


class OneHotClasses(CallOf):
    """`one_hot` has to look at the data for its number of classes.

    ## What it does
    Finds `torch.nn.functional.one_hot(x)` without `num_classes`, or with one that is computed from tensor data.

    ## Why it matters
    Without it the number of classes is the largest value plus one: a size that only the data knows, read as
    a number of Python. So it is where the model computes that number itself.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html
    """

    code = "EXL405"
    name = "one-hot-without-classes"
    outcome = Outcome(FAILS, FAILS)
    callees = ("torch.nn.functional.one_hot",)
    wrong = "counts its classes by looking at the data."
    advice = "Give num_classes."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return F.one_hot(x)
""",
            good="""
def forward(self, x):
    return F.one_hot(x, num_classes=3)
""",
            inputs="(torch.tensor([0, 1, 2]),)",
        ),
    )

    def applies(self, place: Call) -> bool:
        classes = place.argument(1, "num_classes")
        return is_tensor(place.argument(0, "input") or place.argument(0, "tensor")) and (
            classes is None or is_data(classes) or (isinstance(classes, Const) and classes.value == -1)
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return compared_with_range(report.place, context)
