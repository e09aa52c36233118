"""Export calls on something that is no Module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.classes import called_as
from exportlens.inference.places import ExportCall, Place
from exportlens.inference.values import Bound, Function, Native, Partial
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.exporting.export_calls import wrap_callable
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class NotAModule(Rule):
    """`torch.export.export` is given a function, a method or a lambda.

    ## What it does
    Finds export calls whose first argument is not an `nn.Module`: a function, a lambda, a bound method, a
    partial, or an object of another class with `__call__`.

    ## Why it matters
    torch.export exports Modules: their parameters and buffers become those of the program. A wrapper Module
    that calls the function does it.

    ## References
    - https://docs.pytorch.org/docs/stable/export/api_reference.html
    """

    code = "EXL613"
    name = "callable-is-no-module"
    outcome = Outcome(FAILS, FAILS)
    places = (ExportCall,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1


def predict(x):
    return x + 1


def program():
    return torch.export.export(predict, (torch.randn(3, 4),))
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return predict(x)


def predict(x):
    return x + 1


def program():
    return torch.export.export(M(), (torch.randn(3, 4),))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, ExportCall)
        node = place.nodes.get("mod", place.node)
        called = called_as(place.model)
        if called is not None:
            yield self.report(
                place,
                f"torch.export takes a Module, and `{words(node)}` is {called.receiver.describe()}, which is none. Wrap it in "
                "a Module.",
                node=node,
            )
        elif isinstance(place.model, (Function, Bound, Partial, Native)):
            yield self.report(
                place,
                f"torch.export takes a Module, and `{words(node)}` is {place.model.describe()}. Wrap it in "
                "a Module.",
                node=node,
            )
        elif isinstance(node, ast.Attribute) and node.attr == "forward":
            yield self.report(
                place,
                f"torch.export takes a Module, and `{words(node)}` is a method. Give the Module itself.",
                node=node,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, ExportCall)
        return wrap_callable(report.place, context)
