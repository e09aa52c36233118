"""States of random generators read in forward."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.global_draws import drawn_globally
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf

_REFUSED = "a program does not carry the generator's state: save and restore it where the model is called, or hand in the random tensor"
_SEEDS = ("random.seed", "numpy.random.seed")


class GeneratorState(CallOf):
    """The state of a random generator is saved or forked while tracing.

    ## What it does
    Finds `torch.get_rng_state`, `torch.random.fork_rng`, `random.seed`, `random.getstate` and
    `numpy.random.seed` in traced code.

    ## Why it matters
    Strict tracing fails.

    ## References
    - https://docs.pytorch.org/docs/stable/random.html
    """

    code = "EXL506"
    name = "generator-state"
    outcome = Outcome(FAILS, OK)
    callees = (
        "torch.get_rng_state",
        "torch.random.get_rng_state",
        "torch.random.fork_rng",
        "torch.initial_seed",
        "random.seed",
        "random.getstate",
        "random.setstate",
        "numpy.random.seed",
        "numpy.random.get_state",
        "numpy.random.set_state",
    )
    wrong = "works on the state of a random generator: strict tracing fails."
    advice = "Do it outside of the model."
    examples = (
        Example(
            bad="""
def forward(self, x):
    random.seed(0)
    return x + 1
""",
            good="""
def forward(self, x):
    return x + 1
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        # Python runs a function that is assumed to be constant, and with it what works on its own generators and NumPy's.
        return not place.site.assumed or place.name.startswith("torch.")

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        seeded = drawn_globally(report.place, context) if report.place.name in _SEEDS else None
        return seeded or Refusal(_REFUSED)
