"""A rule pack whose only fix computes something else: what verification has to withdraw."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Applicability, Edit, Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Report, Rule


class SineToCosine(Rule):
    """Finds torch.sin, and would write torch.cos."""

    code = "EXL990"
    name = "sine-to-cosine"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = ("torch.sin",)

    def check(self, place: Place) -> Iterator[Report]:
        yield self.report(place, "a sine")

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        where = context.document.range_of(report.place.site.chunk, report.node.func)  # type: ignore[attr-defined]
        return Fix("Use the cosine", (Edit(where, "torch.cos"),), Applicability.UNSAFE)
