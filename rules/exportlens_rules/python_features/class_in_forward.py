"""Classes defined inside of traced functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import LocalClass, Place
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example, Report, Rule


class ClassInForward(Rule):
    """A class is defined while tracing.

    ## What it does
    Finds class statements inside of functions that are traced.

    ## Why it matters
    Strict tracing fails at the class statement. At the top of the file the class is defined once, and tracing only
    makes objects of it.

    ## References
    - https://meta-pytorch.org/compile-graph-break-site/
    """

    code = "EXL330"
    name = "class-in-forward"
    outcome = Outcome(FAILS, OK)
    no_fix = "what else makes instances of the class is not provable: define it at the top of the file"
    places = (LocalClass,)
    examples = (
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        class Scale:
            def __init__(self, factor):
                self.factor = factor

        return x * Scale(2.0).factor
""",
            good="""
from torch import nn


class Scale:
    def __init__(self, factor):
        self.factor = factor


class M(nn.Module):
    def forward(self, x):
        return x * Scale(2.0).factor
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, LocalClass) and isinstance(place.node, ast.ClassDef)
        yield self.report(
            place,
            f"The class `{place.node.name}` is defined while tracing, which strict tracing cannot do: define it at "
            "the top of the file.",
        )
