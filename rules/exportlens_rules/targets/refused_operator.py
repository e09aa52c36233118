"""Functions of torch that a hardware target does not take."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


def _refused() -> dict[str, dict[str, str]]:
    """By target, what it refused and its words (scripts/measure_target_operators.py)."""
    text = importlib.resources.files(__package__).joinpath("refused.json").read_text(encoding="utf-8")
    return {target: row["refused"] for target, row in json.loads(text).items()}


@functools.cache
def _by_function() -> dict[str, tuple[str, ...]]:
    """By function, the targets that refused it; methods of tensors count as the functions of their name."""
    found: dict[str, list[str]] = {}
    for target, functions in _refused().items():
        for name in functions:
            found.setdefault(name, []).append(target)
            if name.count(".") == 1:
                found.setdefault(f"torch.Tensor.{name.partition('.')[2]}", []).append(target)
    return {name: tuple(targets) for name, targets in found.items()}


class RefusedOperator(Rule):
    """A hardware target that the model is for does not take a function of torch.

    ## What it does
    Finds calls of torch's functions that a configured target refused when each was lowered in a model of its own.

    ## Why it matters
    torch exports the program, and the target's converter stops at it. The operator would have to be replaced by others, or
    computed outside of the model.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL802"
    name = "refused-operator"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "which other function means the same on the target is for you to say: the message names the target, and "
        "its page what it takes instead"
    )
    places = (Call,)
    callees = tuple(_by_function())
    targets = tuple(_refused())
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x @ torch.linalg.inv(x.T @ x + torch.eye(4))
""",
            good="""
def forward(self, x):
    return x @ (x.T @ x + torch.eye(4))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        refusing = _by_function().get(place.name, ())
        if not refusing or not _of_tensors(place):
            return
        yield self.report(
            place,
            f"`{words(place.node)}`: {place.name} is not taken by {', '.join(refusing)}. Use other operators, or compute "
            "it outside of the model.",
            targets=refusing,
        )


def _of_tensors(place: Call) -> bool:
    """Whether a traced tensor takes part: what is made of constants alone may be folded away."""
    given = [*place.args, *place.kwargs.values(), *([place.receiver] if place.receiver is not None else [])]
    return any(
        isinstance(option, Tensor) and option.origin in ("input", "fresh", "parameter", "buffer")
        for value in given
        for option in options(value)
    )
