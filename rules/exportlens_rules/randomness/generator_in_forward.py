"""`torch.Generator()` made in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, WRONG, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class GeneratorInForward(CallOf):
    """A generator is made while tracing.

    ## What it does
    Finds `torch.Generator(...)` in traced code.

    ## Why it matters
    Strict tracing fails. Non-strict tracing loses the seed: the program draws from the global generator.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Generator.html
    """

    code = "EXL507"
    name = "generator-in-forward"
    outcome = Outcome(FAILS, WRONG)
    no_fix = (
        "a program has no generators: draw with it where the model is called, and hand in the random tensor"
    )
    callees = ("torch.Generator",)
    wrong = "is not part of a program: its seed is lost."
    advice = "Draw from the global generator, or pass random numbers in."
    examples = (
        Example(
            bad="""
def forward(self, x):
    generator = torch.Generator()
    generator.manual_seed(0)
    return x + torch.randn(4, generator=generator)
""",
            good="""
def forward(self, x):
    return x + torch.randn(4)
""",
        ),
    )
