"""Seeds set in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, WRONG, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class Seeding(CallOf):
    """A random generator is seeded while tracing.

    ## What it does
    Finds `torch.manual_seed`, `random.seed`, `numpy.random.seed`, `torch.seed` and the getting and setting of
    generator states in traced code.

    ## Why it matters
    Strict tracing fails. In non-strict mode the seed is set while tracing only: the program draws other
    numbers than eager.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    code = "EXL505"
    name = "seeding-in-forward"
    outcome = Outcome(FAILS, WRONG)
    no_fix = (
        "a program draws its own random numbers: seed where the model is called, or hand in the random tensor"
    )
    callees = (
        "torch.manual_seed",
        "torch.seed",
        "torch.random.manual_seed",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "torch.set_rng_state",
        "torch.random.set_rng_state",
    )
    wrong = "sets a seed while tracing: the program does not."
    advice = "Seed outside of the model."
    examples = (
        Example(
            bad="""
def forward(self, x):
    torch.manual_seed(0)
    return x + torch.randn(4)
""",
            good="""
def forward(self, x):
    return x + torch.randn(4)
""",
        ),
    )
