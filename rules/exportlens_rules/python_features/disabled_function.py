"""Functions excluded from compilation."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Bound, Function
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.modules_in_forward import without_mark
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words

DIRECTIVES = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch._disable_dynamo"})


class DisabledFunction(Rule):
    """A function marked `torch.compiler.disable` is called.

    ## What it does
    Finds calls of functions decorated with `torch.compiler.disable` or `torch._dynamo.disable` in traced
    code.

    ## Why it matters
    torch.compile runs them outside of the graph; torch.export in strict mode has no outside and fails.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.compiler.disable.html
    """

    code = "EXL327"
    name = "disabled-function"
    outcome = Outcome(FAILS, OK)
    places = (Call,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


@torch.compiler.disable
def double(x):
    return x * 2


class M(nn.Module):
    def forward(self, x):
        return double(x)
""",
            good="""
from torch import nn


def double(x):
    return x * 2


class M(nn.Module):
    def forward(self, x):
        return double(x)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        function = place.callee.function if isinstance(place.callee, Bound) else place.callee
        if isinstance(function, Function) and DIRECTIVES & set(function.decorators):
            yield self.report(
                place,
                f"`{words(place.node)}` calls a function that is excluded from compilation: strict tracing "
                "fails. "
                "Remove the decorator, or export with strict=False.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return without_mark(report.place, context, DIRECTIVES)
