"""NumPy's random numbers."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.library import draws_the_same
from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.calls.random_numbers import torch_random
from exportlens.rewriting.calls.seeded_draws import REFUSED, drawn_by_python
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words

_ARRAY = Outcome(WRONG, WRONG)
_UNREAD = Outcome(FAILS, OK)
_NUMBERS = frozenset({"rand", "randn", "random", "uniform", "normal"})
_GENERATORS = ("numpy.random.Generator.", "numpy.random.RandomState.")
_STATE = frozenset({"seed", "get_state", "set_state"})


class NumpyRandom(Rule):
    """Numbers of `numpy.random` are frozen at export.

    ## What it does
    Finds calls of `numpy.random.rand`, `randn`, `randint`, `choice`, `default_rng` and the others in traced
    code, and draws of a generator that the model holds (`self.rng.normal()`).

    ## Why it matters
    Non-strict tracing draws once and writes the number into the program, which repeats it for ever.
    Strict tracing fails, or draws from torch's generator instead: other numbers than eager.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    code = "EXL503"
    name = "numpy-random"
    left_to_python = True
    outcome = Outcome(FAILS, WRONG)
    places = (Call,)
    callees = ("numpy.random.*",)
    examples = (
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        if np.random.uniform() > 0.5:
            return x + 1
        return x - 1
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return torch.where(torch.rand(()) > 0.5, x + 1, x - 1)
""",
        ),
        Example(
            bad="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + torch.from_numpy(np.random.randn(4)).float()
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + torch.randn(4)
""",
            outcome=_ARRAY,
        ),
        Example(
            bad="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.chance = np.random.default_rng()

    def forward(self, x):
        return x + torch.from_numpy(self.chance.normal(size=4)).float()
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + torch.randn(4)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        function = place.name.rpartition(".")[2]
        if function in _STATE:
            return
        held = place.name.startswith(_GENERATORS)
        fixed = draws_the_same(place.receiver) or draws_the_same(place.result)
        several = bool(place.args) and function in ("rand", "randn") and not held
        if not place.used and not held and (several or place.kwargs or function not in _NUMBERS):
            return  # an array that nothing reads
        yield self.report(
            place,
            f"`{words(place.node)}` draws once, while tracing: the program repeats that number for ever. "
            "Use torch.rand, "
            "torch.randn or torch.randint.",
            outcome=_ARRAY if several else None if place.used and not fixed else _UNREAD,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if draws_the_same(report.place.receiver) or draws_the_same(report.place.result):
            return drawn_by_python(report.place, context)
        if report.place.name.startswith(_GENERATORS):
            return Refusal(REFUSED)
        return torch_random(report.place, context)
