"""Numbers and lists of the model that change from call to call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeWrite, Place
from exportlens.inference.values import Const, Instance, Sequence, Shape, Static, TensorScalar, options
from exportlens.outcome import BAKED, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.number_state import number_in_buffer
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.state_reads import loaded, reads
from exportlens_rules.reading import ancestors, words


class PythonState(Rule):
    """A counter of Python on the model is frozen at export.

    ## What it does
    Finds `self.steps += 1`, `self.rate = self.rate * 0.9` and the like: numbers that a Module keeps as plain
    attributes and computes anew in each call, from what the last one left or from tensor data. What the fix makes
    a buffer still reads as a number.

    ## Why it matters
    The exported program has no Python attributes. It keeps the number that stood there while tracing, for
    ever. A buffer is part of the program, and its updates are too.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code = "EXL205"
    name = "python-state"
    outcome = Outcome(BAKED, BAKED)
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
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = 1.0

    def forward(self, x):
        self.rate = max(self.rate * 0.9, 0.5)
        return x * self.rate
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rate", torch.tensor(1.0, dtype=torch.float64))

    def forward(self, x):
        self.rate.copy_(torch.clamp(self.rate * 0.9, min=0.5))
        return x * self.rate.item()
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeWrite)
        if not isinstance(place.owner, Instance) or place.owner.traced or place.old is None:
            return
        given = options(place.value)
        if all(isinstance(option, TensorScalar) for option in given):
            if not place.augmented and not _is_asked_above(place):
                return
        elif not all(isinstance(option, (Const, Static, Shape)) for option in given) or not (
            (place.augmented and not isinstance(place.old, Sequence)) or _is_carried(place)
        ):
            return
        node = place.node
        target = node.target if isinstance(node, ast.AugAssign) else node
        yield self.report(
            place,
            f"`{words(target)}` is a number of Python: the exported program keeps the value that it had while "
            "tracing. Make it a buffer.",
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, AttributeWrite)
        return number_in_buffer(report.place, context)


def _is_asked_above(place: AttributeWrite) -> bool:
    """Whether the function has read the number that the last call left, before it puts one of this call's data there."""
    function = place.site.function
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    began = place.began
    if place.elsewhere or target is None or function is None:
        return False
    return (
        isinstance(began, Const)
        and type(began.value) in (int, float)
        and any(
            isinstance(each, ast.Attribute)
            and isinstance(each.ctx, ast.Load)
            and ast.dump(each) == ast.dump(loaded(target))
            and each.lineno <= target.lineno
            for each in ast.walk(function.node)
        )
    )


def _is_carried(place: AttributeWrite) -> bool:
    """Whether a number is computed from the number that the last call left."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if place.elsewhere or statement is None or target is None or function is None:
        return False
    began = place.began
    number = isinstance(began, Const) and type(began.value) in (int, float)
    return number and reads(statement.value, [ast.dump(loaded(target))])
