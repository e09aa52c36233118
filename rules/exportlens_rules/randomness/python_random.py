"""Python's random module."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.library import draws_the_same
from exportlens.inference.places import Call
from exportlens.inference.values import Const
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.calls.random_numbers import torch_random
from exportlens.rewriting.calls.seeded_draws import REFUSED, drawn_by_python
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf

_UNREAD = Outcome(FAILS, OK)
_GENERATOR = "random.Random"


def _is_fixed(place: Call) -> bool:
    """Whether every draw gives the same: `randrange(1)`, `randint(n, n)`, `uniform(a, a)`."""
    known = [value.value for value in place.args if isinstance(value, Const)]
    if len(known) != len(place.args) or place.kwargs:
        return False
    function = place.name.rpartition(".")[2]
    if function == "randrange":
        return known in ([1], [0, 1])
    return function in ("randint", "uniform") and len(known) == 2 and known[0] == known[1]


class PythonRandom(CallOf):
    """Numbers of Python's random module are frozen at export.

    ## What it does
    Finds calls of `random.random`, `random.randint`, `random.choice`, `random.shuffle` and the others, and the same methods of a
    `random.Random` that the model holds.

    ## Why it matters
    Strict tracing fails. Non-strict tracing draws once and writes the number into the program, which then
    computes the same for ever, without any error.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    code = "EXL501"
    name = "python-random"
    left_to_python = True
    outcome = Outcome(FAILS, WRONG)
    callees = tuple(
        f"{owner}.{name}"
        for owner in ("random", _GENERATOR)
        for name in (
            "random",
            "randint",
            "uniform",
            "choice",
            "choices",
            "sample",
            "shuffle",
            "gauss",
            "normalvariate",
            "randrange",
            "getrandbits",
            "betavariate",
            "triangular",
            "expovariate",
        )
    )
    wrong = "draws once, while tracing: the program repeats that number for ever."
    advice = "Use torch.rand, torch.randint or torch.randperm."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x * random.random()
""",
            good="""
def forward(self, x):
    return x * torch.rand(())
""",
        ),
        Example(
            bad="""
def forward(self, x):
    if random.random() > 0.5:
        return x + 1
    return x - 1
""",
            good="""
def forward(self, x):
    return torch.where(torch.rand(()) > 0.5, x + 1, x - 1)
""",
        ),
        Example(
            bad="""
def forward(self, x):
    skipped = random.uniform(0, 1)
    if self.training and skipped < 0.1:
        return x
    return x * 2
""",
            good="""
def forward(self, x):
    if self.training and random.uniform(0, 1) < 0.1:
        return x
    return x * 2
""",
            outcome=_UNREAD,
        ),
        Example(
            bad="""
import random

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.chance = random.Random()

    def forward(self, x):
        return x * self.chance.random()
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * torch.rand(())
""",
        ),
    )

    def outcome_of(self, place: Call) -> Outcome:
        fixed = _is_fixed(place) or draws_the_same(place.receiver)
        return self.outcome if place.used and not fixed else _UNREAD

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if draws_the_same(report.place.receiver):
            return drawn_by_python(report.place, context)
        if report.place.name.startswith(_GENERATOR):
            return Refusal(REFUSED)
        return torch_random(report.place, context)
