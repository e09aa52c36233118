"""Layers with parameters made in forward."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.registration import LAYERS_WITH_PARAMETERS
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.modules_in_forward import function_for_layer
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class LayerInForward(Rule):
    """A layer with parameters is made in forward.

    ## What it does
    Finds `nn.Linear(...)`, `nn.Conv2d(...)` and other layers with parameters that traced code creates.
    Layers without parameters (`nn.ReLU()`) are fine.

    ## Why it matters
    Strict tracing fails. In non-strict mode the program draws new random weights on every call, as eager
    does: they are not in the state_dict and learn nothing.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
    """

    code = "EXL603"
    name = "layer-in-forward"
    outcome = Outcome(FAILS, OK)
    places = (Call,)
    callees = tuple(
        f"torch.nn.{middle}{name}" for name in LAYERS_WITH_PARAMETERS for middle in ("", "modules.")
    )
    examples = (
        Example(
            bad="""
def forward(self, x):
    return nn.Bilinear(4, 4, 2)(x, x)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Bilinear(4, 4, 2)

    def forward(self, x):
        return self.layer(x, x)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if place.receiver is not None:
            return
        yield self.report(
            place,
            f"`{words(place.node)}` makes a layer while tracing: strict tracing fails, and its weights are "
            "random on every call. "
            "Make it in `__init__`.",
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return function_for_layer(report.place, context)
