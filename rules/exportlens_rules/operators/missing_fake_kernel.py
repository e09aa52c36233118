"""Custom operators without a fake kernel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Bound, Function
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.state.registrations import register_fake
from exportlens.rule import Example, Report, Rule

_BAD = """
import torch
from torch import nn


@torch.library.custom_op("exportlens_examples::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 2)
"""
_FAKE = """

@double.register_fake
def _(x):
    return torch.empty_like(x)
"""
_MODEL = """

class M(nn.Module):
    def forward(self, x):
        return double(x)
"""


class MissingFakeKernel(Rule):
    """A custom operator does not say which shape it returns.

    ## What it does
    Finds calls of functions under `torch.library.custom_op` for which the file registers no fake kernel.

    ## Why it matters
    Tracing has no data to run the operator on. The fake kernel tells shape and dtype of its result;
    without it both modes fail.

    ## References
    - https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake
    """

    code = "EXL707"
    name = "missing-fake-kernel"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    examples = (Example(bad=_BAD + _MODEL, good=_BAD + _FAKE + _MODEL),)

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        function = place.callee.function if isinstance(place.callee, Bound) else place.callee
        if not isinstance(function, Function):
            return
        if not any(name.endswith("library.custom_op") or name == "custom_op" for name in function.decorators):
            return
        returns = getattr(function.node, "returns", None)
        if isinstance(returns, ast.Constant) and returns.value is None:
            return  # torch knows what an operator does that only writes
        text = function.scope.document.text
        own = rf"{re.escape(function.name)}\s*\.\s*register_fake"
        if re.search(own + r"|register_fake\s*\(|impl_abstract\s*\(", text) is None:
            yield self.report(
                place,
                f"The custom operator `{function.name}` has no fake kernel: tracing cannot know its shape. "
                f"Register one with @{function.name}.register_fake.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return register_fake(report.place, context)
