"""Context managers that the strict tracing of older torch does not enter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place, With
from exportlens.inference.values import Sequence
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.generator_contexts import generator_written_out, without_contextlib
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class GeneratorContext(Rule):
    """A context manager made of a generator is entered while tracing, for torch before 2.7.

    ## What it does
    Finds `with` on a function that `contextlib.contextmanager` decorates.

    ## Why it matters
    Strict tracing follows such generators from torch 2.7 on; before, it fails.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL337"
    name = "generator-context"
    outcome = Outcome(OK, OK, before={"2.7": (FAILS, OK)})
    places = (With,)
    examples = (
        Example(
            bad="""
import contextlib

import torch
from torch import nn


@contextlib.contextmanager
def frozen():
    with torch.no_grad():
        yield


class M(nn.Module):
    def forward(self, x):
        with frozen():
            y = x * 2
        return y + 1
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x * 2
        return y + 1
""",
        ),
        Example(
            bad="""
from contextlib import contextmanager

from torch import nn


@contextmanager
def with_factor(module, factor):
    before = module.factor
    module.factor = factor
    try:
        yield module
    finally:
        module.factor = before


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 1.0

    def forward(self, x):
        with with_factor(self, 2.0) as scaled:
            y = x * scaled.factor
        return y + self.factor
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * 2.0 + 1.0
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, With)
        if isinstance(place.manager, Sequence) and place.manager.kind == "generator":
            yield self.report(
                place,
                f"`with {words(place.node)}` enters a generator: torch before 2.7 does not follow it in strict mode. Write it "
                "out here, or trace in non-strict mode.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, With)
        return generator_written_out(report.place, context)


class SuppressedException(Rule):
    """`contextlib.suppress(...)` is entered while tracing, for older torch.

    ## What it does
    Finds `with` on `contextlib.suppress`.

    ## Why it matters
    Strict tracing of older torch does not enter it. `try` and `except` do the same.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL338"
    name = "suppressed-exception"
    outcome = Outcome(OK, OK, before={"2.11": (FAILS, OK)})
    places = (With,)
    examples = (
        Example(
            bad="""
import contextlib

from torch import nn


class M(nn.Module):
    def forward(self, x):
        with contextlib.suppress(KeyError):
            x = x + 1
        return x
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        try:
            x = x + 1
        except KeyError:
            pass
        return x
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, With)
        if place.name == "contextlib.suppress":
            yield self.report(
                place,
                f"`with {words(place.node)}` is not entered by the strict tracing of this torch. Use `try` and `except`, or trace "
                "in non-strict mode.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, With)
        return without_contextlib(report.place, context)


class NullcontextOfValue(Rule):
    """`contextlib.nullcontext(value)` is entered while tracing, for older torch.

    ## What it does
    Finds `with` on a `contextlib.nullcontext` that is given a value.

    ## Why it matters
    Strict tracing of older torch does not enter it. An assignment does the same.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL339"
    name = "nullcontext-of-value"
    outcome = Outcome(OK, OK, before={"2.9": (FAILS, OK)})
    places = (With,)
    examples = (
        Example(
            bad="""
from contextlib import nullcontext

from torch import nn


class M(nn.Module):
    def forward(self, x):
        with nullcontext(x) as y:
            z = y + 1
        return z
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        y = x
        return y + 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, With)
        given = isinstance(place.node, ast.Call) and bool(place.node.args or place.node.keywords)
        if place.name == "contextlib.nullcontext" and given:
            yield self.report(
                place,
                f"`with {words(place.node)}` is not entered by the strict tracing of this torch. Assign the value, or trace in "
                "non-strict mode.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, With)
        return without_contextlib(report.place, context)
