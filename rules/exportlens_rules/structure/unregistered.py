"""Modules and Parameters in plain lists and dicts."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place, UnregisteredRead
from exportlens.inference.values import Tensor
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.state.registered_lists import register_held
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class Unregistered(Rule):
    """A Module or Parameter lies in a plain list or dict.

    ## What it does
    Finds plain lists, tuples and dicts of Modules with parameters, or of Parameters, that forward uses and that the model
    registers nowhere else.

    ## Why it matters
    Strict tracing fails, with a `KeyError` that names no line. In eager, too, they are no part of the model:
    `parameters()` leaves them out, so they are not trained, `to()` does not move them, and the state_dict does not have
    them.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.ParameterList.html
    """

    code = "EXL615"
    name = "unregistered"
    outcome = Outcome(FAILS, OK)
    places = (UnregisteredRead,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4) for _ in range(2)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = {"first": nn.Parameter(torch.ones(4))}

    def forward(self, x):
        return x * self.scales["first"]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterDict({"first": nn.Parameter(torch.ones(4))})

    def forward(self, x):
        return x * self.scales["first"]
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, UnregisteredRead)
        parameters = isinstance(place.found, Tensor)
        what = "Parameters" if parameters else "Modules with parameters"
        into = (
            "an `nn.ParameterList` or `nn.ParameterDict`"
            if parameters
            else "an `nn.ModuleList` or `nn.ModuleDict`"
        )
        yield self.report(
            place,
            f"`{words(place.node)}` holds {what} that are not registered: strict tracing fails, and they are neither "
            f"trained nor saved with the model. Keep them in {into}.",
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, UnregisteredRead)
        return register_held(report.place, context)
