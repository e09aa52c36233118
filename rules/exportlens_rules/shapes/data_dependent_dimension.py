"""Dimensions that tensor data names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Place
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.sizes.sizes import counted_dimensions, range_for_dimensions
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_scalar, words

_NAMES = frozenset({"dim", "dims", "dim0", "dim1", "axis", "axes"})


class DataDependentDimension(Rule):
    """A number from tensor data says which dimension an operator works on.

    ## What it does
    Finds dimensions that were read out of tensors: `x.mean(dim=torch.arange(1, x.dim()).tolist())`.

    ## Why it matters
    The shape of the result hangs on the dimension, so torch.export must know it: both modes fail. A list made
    by `range` is known.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL415"
    name = "data-dependent-dimension"
    outcome = Outcome(FAILS, FAILS)
    places = (Conversion,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x.mean(dim=torch.arange(1, x.dim()).tolist())
""",
            good="""
def forward(self, x):
    return x.mean(dim=list(range(1, x.dim())))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Conversion)
        if place.to == "size" and place.use in _NAMES and is_scalar(place.value):
            yield self.report(
                place,
                f"`{words(place.node)}`: tensor data says which dimension it works on, which torch.export "
                "must know. Make the list by `range`.",
            )
            yield from self._where_counted(place)

    def _where_counted(self, place: Conversion) -> Iterator[Report]:
        """The file that counts the dimensions, where it is another than the one that torch blames: it has the line to mend."""
        try:
            counted = counted_dimensions(place)
        except Refused:
            return
        if counted.site.scope.path != place.site.scope.path:
            yield self.report(
                replace(place, site=counted.site, node=counted.node),
                f"`{words(counted.node)}` makes dimensions of tensor data for {place.site.scope.path.name}: torch.export "
                "must know them. Make the list by `range`.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Conversion)
        return range_for_dimensions(report.place, context)
