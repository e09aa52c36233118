"""`len(t)` of a tensor whose length depends on data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Place
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.sizes import shape_for_length
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import ancestors, is_data, is_tested, words


class LengthOfMasked(Rule):
    """`len(...)` of a tensor that has as many rows as the data says.

    ## What it does
    Finds `len(torch.unique(x))`, `len(x[mask])` and the like.

    ## Why it matters
    Python demands a real number from `len()`, so non-strict tracing stops. `t.shape[0]` gives the same size
    as a symbolic number that the program keeps.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL404"
    name = "length-of-data-dependent-tensor"
    outcome = Outcome(OK, FAILS)
    places = (Conversion,)
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    kept = x[x > 0]
    return kept.sum() / len(kept)
""",
            good="""
def forward(self, x: torch.Tensor):
    kept = x[x > 0]
    return kept.sum() / kept.shape[0]
""",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return torch.zeros(len(torch.unique(x)))
""",
            good="""
def forward(self, x: torch.Tensor):
    return torch.zeros(torch.unique(x).shape[0])
""",
            inputs="(torch.tensor([1, 2, 2]),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Conversion)
        if (
            place.to == "len"
            and is_data(place.value)
            and (_is_asserted(place) or not is_tested(place, anywhere=True))
        ):
            yield self.report(
                place,
                f"`{words(place.node)}` demands a number of Python for a size that depends on tensor data. "
                "Use "
                "`.shape[0]`, which stays symbolic.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Conversion)
        return shape_for_length(report.place, context)


def _is_asserted(place: Conversion) -> bool:
    """Whether an `assert` without message compares the length with no constant: torch checks that when the program runs, but asks for
    the length now."""
    compared = False
    for outer in ancestors(place):
        if isinstance(outer, ast.Compare):
            compared = not any(isinstance(side, ast.Constant) for side in (outer.left, *outer.comparators))
        elif isinstance(outer, ast.Assert):
            return compared and outer.msg is None
        elif not isinstance(outer, ast.BoolOp):
            return False
    return False
