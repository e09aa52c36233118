"""Python decisions on a dimension that is declared dynamic."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place, Truth
from exportlens.inference.values import Shape
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.control_flow import rewrite_truth
from exportlens.rule import Example, Report, Rule

from exportlens_rules.control_flow.decision import leads_to_raise


class DynamicSizeDecision(Rule):
    """A decision on the size of a dynamic dimension.

    ## What it does
    Finds `if`, `while`, `assert` and the like on a size that `dynamic_shapes` declares by a Dim, where some sizes of
    its range decide one way and some the other.

    ## Why it matters
    Tracing follows one branch, which then holds for a part of the range only: export fails with "Constraints
    violated". `torch.cond` takes the comparison of a size as its condition and keeps both branches; if only one of
    them is needed, narrow the Dim by `min` and `max`.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html#expressing-dynamism
    """

    code = "EXL419"
    name = "dynamic-size-decision"
    outcome = Outcome(FAILS, FAILS)
    places = (Truth,)
    of_declared_sizes = True
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        if x.shape[0] > 16:
            x = x - x.mean(dim=0, keepdim=True)
        return x * 2


def program():
    size = torch.export.Dim("size", min=2, max=64)
    return torch.export.export(M(), (torch.randn(4, 8),), dynamic_shapes={"x": {0: size}})
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        x = torch.cond(x.shape[0] > 16, lambda x: x - x.mean(dim=0, keepdim=True), lambda x: x.clone(), (x,))
        return x * 2


def program():
    size = torch.export.Dim("size", min=2, max=64)
    return torch.export.export(M(), (torch.randn(4, 8),), dynamic_shapes={"x": {0: size}})
""",
            inputs="(torch.randn(4, 8),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Truth)
        size = place.value
        if isinstance(size, Shape) and size.bounds is not None:
            yield self.report(
                place,
                f"`{size.origin}` is dynamic, Dim {size.bounds.name!r} from {size.bounds.words}, and decides here: "
                'tracing follows one way, and export ends in "Constraints violated". Use torch.cond, or narrow the '
                "Dim.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Truth)
        if leads_to_raise(report.place) or report.place.context not in ("if", "ternary"):
            return Refusal("no other size may pass here: narrow the Dim by `min` and `max`")
        return rewrite_truth(report.place, context)
