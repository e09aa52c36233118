"""Numbers and lists of the model that change from call to call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import AttributeWrite, Place
from exportlens.inference.values import Const, Instance, Sequence, Shape, Static, options
from exportlens.outcome import BAKED, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class PythonState(Rule):
    """A counter of Python on the model is frozen at export.

    ## What it does
    Finds `self.steps += 1` and the like: numbers that a Module keeps as plain attributes and counts up in
    forward.

    ## Why it matters
    The exported program has no Python attributes. It keeps the number that stood there while tracing, for
    ever. A buffer is part of the program, and its updates are too.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code = "EXL205"
    name = "python-state"
    outcome = Outcome(BAKED, BAKED)
    no_fix = (
        "whether the count shall go on in the exported program is for you to say: keep it in a buffer, or count "
        "outside of the model"
    )
    places = (AttributeWrite,)
    examples = (
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x + self.steps
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps.add_(1)
        return x + self.steps
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeWrite)
        if not (place.augmented and isinstance(place.owner, Instance)) or place.old is None:
            return
        if all(
            isinstance(option, (Const, Static, Shape)) for option in options(place.value)
        ) and not isinstance(place.old, Sequence):
            node = place.node
            target = node.target if isinstance(node, ast.AugAssign) else node
            yield self.report(
                place,
                f"`{words(target)}` is a number of Python: the exported program keeps the value that it "
                "had while "
                "tracing. Make it a buffer.",
            )
