"""Exceptions raised and caught in traced code."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import Handler, Place
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example, Report, Rule


class CaughtException(Rule):
    """An exception of Python is raised and caught while tracing.

    ## What it does
    Finds `try` statements whose body certainly raises.

    ## Why it matters
    Current torch follows exceptions of Python. Older strict tracing does not, and fails.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL305"
    name = "caught-exception"
    outcome = Outcome(OK, OK, before={"2.7": (FAILS, OK)})
    places = (Handler,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    try:
        raise ValueError("no scale")
    except ValueError:
        scale = 2.0
    return x * scale
""",
            good="""
def forward(self, x):
    scale = 2.0
    return x * scale
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Handler)
        if place.raises == "yes":
            yield self.report(
                place,
                "This `try` raises while tracing: older torch does not follow exceptions in strict mode. "
                "Decide with "
                "an `if` on configuration.",
            )
