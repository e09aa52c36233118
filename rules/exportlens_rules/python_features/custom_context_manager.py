"""Context managers of the workspace in traced code."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import Place, With
from exportlens.inference.values import ClassValue, Instance, Sequence
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class CustomContextManager(Rule):
    """A context manager that is not torch's is entered while tracing.

    ## What it does
    Finds `with` on classes with `__enter__` and on `contextlib.contextmanager` functions of your own.

    ## Why it matters
    Current torch follows them. Older strict tracing knows its own context managers only, and fails.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL306"
    name = "custom-context-manager"
    outcome = Outcome(OK, OK, before={"2.7": (FAILS, OK)})
    places = (With,)
    examples = (
        Example(
            bad="""
from torch import nn


class Scaled:
    def __enter__(self):
        return 2.0

    def __exit__(self, *error):
        return False


class M(nn.Module):
    def forward(self, x):
        with Scaled() as scale:
            return x * scale
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        scale = 2.0
        return x * scale
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, With)
        manager = place.manager
        own = isinstance(manager, Instance) and isinstance(manager.cls, ClassValue)
        if own or (isinstance(manager, Sequence) and manager.kind == "generator"):
            yield self.report(
                place,
                f"`with {words(place.node)}` enters a context manager of your own: older torch does not "
                "follow it in "
                "strict mode. Call what it does directly.",
            )
