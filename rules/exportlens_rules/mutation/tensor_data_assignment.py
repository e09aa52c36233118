"""A tensor's `.data`, assigned while tracing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeWrite, Place
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.calls.data_attribute import assign_data
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.tensor_data import HARMLESS
from exportlens_rules.reading import is_tensor, words

_PARAMETER = Outcome(WRONG, FAILS)
# What is assigned is computed without reading `.data` of anything: strict tracing follows it.
_COMPUTED = Outcome(OK, WRONG)


class TensorDataAssignment(Rule):
    """`t.data = u` swaps a tensor's content while tracing.

    ## What it does
    Finds assignments to `.data` of traced tensors, parameters and buffers: weight clipping, spectral norm
    and the like in older code.

    ## Why it matters
    On a tensor made in forward, strict tracing fails and non-strict tracing exports a program without the
    assignment. On a parameter, what is computed from another `.data` makes strict tracing export a program that raises
    or differs when it runs, and non-strict tracing fails; strict tracing follows what is computed without it, and
    non-strict tracing exports a program without the assignment.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.register_parametrization.html
    """

    code = "EXL203"
    name = "tensor-data-assignment"
    outcome = Outcome(FAILS, WRONG)
    places = (AttributeWrite,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    y = x * 2
    y.data = x + 3
    return y
""",
            good="""
def forward(self, x):
    y = x + 3
    return y
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        self.weight.data = self.weight.data * 2
        return x * self.weight
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            self.weight.mul_(2)
        return x * self.weight
""",
            outcome=_PARAMETER,
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            self.bias.data = -x.mean(0)
        return x + self.bias
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            self.bias.copy_(-x.mean(0))
        return x + self.bias
""",
            outcome=_COMPUTED,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeWrite)
        if place.attr != "data" or not is_tensor(place.owner):
            return
        held = all(isinstance(option, Tensor) and option.origin != "fresh" for option in options(place.owner))
        target = words(place.node)
        yield self.report(
            place,
            f"The assignment to `{target if target.endswith('.data') else '.data'}` is not seen by the "
            "tracer: the "
            "exported program is wrong or export fails. Compute a new tensor, or use `copy_` under "
            "torch.no_grad().",
            outcome=None if not held else _PARAMETER if _reads_data(place) else _COMPUTED,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, AttributeWrite)
        return assign_data(report.place, context)


def _reads_data(place: AttributeWrite) -> bool:
    """Whether the function around an assignment reads `.data`, of anything, for more than its shape or dtype."""
    function = place.site.function
    if function is None:
        return True
    harmless = {
        id(node.value)
        for node in ast.walk(function.node)
        if isinstance(node, ast.Attribute) and node.attr in HARMLESS
    }
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "data"
        and isinstance(node.ctx, ast.Load)
        and id(node) not in harmless
        for node in ast.walk(function.node)
    )
