"""The common shape of rules that look at calls of known functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from exportlens.inference.places import Call, Place
from exportlens.outcome import Outcome
from exportlens.rule import Report, Rule

from exportlens_rules.reading import words


class CallOf(Rule):
    """Base of rules on calls of `callees`: what is `wrong` with the call, and the `advice`."""

    places: ClassVar[tuple[type[Place], ...]] = (Call,)
    wrong: ClassVar[str]
    advice: ClassVar[str] = ""

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if self.applies(place):
            yield self.report(
                place,
                f"`{words(place.node)}` {self.wrong} {self.advice}".rstrip(),
                outcome=self.outcome_of(place),
            )

    def outcome_of(self, place: Call) -> Outcome:
        """What comes of this call."""
        return self.outcome

    def applies(self, place: Call) -> bool:
        """Whether the call is wrong with these arguments."""
        return True
