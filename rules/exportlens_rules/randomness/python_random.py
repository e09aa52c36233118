"""Python's random module."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, WRONG, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.random_numbers import torch_random
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class PythonRandom(CallOf):
    """Numbers of Python's random module are frozen at export.

    ## What it does
    Finds calls of `random.random`, `random.randint`, `random.choice`, `random.shuffle` and the others.

    ## Why it matters
    Strict tracing fails. Non-strict tracing draws once and writes the number into the program, which then
    computes the same for ever, without any error.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    code = "EXL501"
    name = "python-random"
    outcome = Outcome(FAILS, WRONG)
    callees = (
        "random.random",
        "random.randint",
        "random.uniform",
        "random.choice",
        "random.choices",
        "random.sample",
        "random.shuffle",
        "random.gauss",
        "random.normalvariate",
        "random.randrange",
        "random.getrandbits",
        "random.betavariate",
        "random.triangular",
        "random.expovariate",
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
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return torch_random(report.place, context)
