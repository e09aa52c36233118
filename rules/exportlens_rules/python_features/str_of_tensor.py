"""`str(t)` and `repr(t)`."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Conversion, Place
from exportlens.outcome import BAKED, FAILS, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.guards import log_not_while_compiling
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, words


class StrOfTensor(Rule):
    """`str(...)` or `repr(...)` of a tensor.

    ## What it does
    Finds `str` and `repr` of tensors and of numbers read out of them.

    ## Why it matters
    Strict tracing fails, whatever is done with the text. Non-strict tracing freezes "FakeTensor(...)" into
    the program.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL304"
    name = "str-of-tensor"
    outcome = Outcome(FAILS, BAKED)
    places = (Conversion, Call)
    callees = ("builtins.str", "builtins.repr", "builtins.ascii")
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + len(str(x.sum()))
""",
            good="""
def forward(self, x):
    return x + x.dim()
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        value = place.argument(0, "object") if isinstance(place, Call) else None
        if isinstance(place, Conversion) and place.to == "str":
            value = place.value
        if is_data(value):
            yield self.report(
                place,
                f"`{words(place.node)}` makes text of tensor data: strict tracing fails, else the text is "
                "frozen at "
                "export. Return the tensor and format it outside of the model.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        return log_not_while_compiling(report.place, context)
