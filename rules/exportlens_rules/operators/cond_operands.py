"""Operands of torch.cond that are no tensors."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import COND
from exportlens_rules.reading import is_tensor, words


class CondOperands(Rule):
    """The operands of `torch.cond` are not a tuple of tensors.

    ## What it does
    Finds `torch.cond` whose last argument is a tensor instead of a tuple.

    ## Why it matters
    Operands must be tensors in a tuple or list.

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL701"
    name = "cond-operands"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "what the branches shall be given is for you to say: write a tuple of tensors, and let the branches read "
        "the rest from outside"
    )
    places = (Call,)
    callees = COND
    examples = (
        Example(
            bad="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x)
""",
            good="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        operands = place.argument(3, "operands")
        if is_tensor(operands):
            yield self.report(
                place,
                f"`{words(place.node)}` takes a tuple of tensors as operands, and got a tensor: write "
                "(tensor,).",
            )
