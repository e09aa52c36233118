"""State in names that a function declares global or nonlocal."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import NameWrite, Place
from exportlens.inference.values import Const, Shape, Static, Tensor, options
from exportlens.outcome import BAKED, WRONG, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import ancestors, is_tensor

_TENSOR = Outcome(WRONG, WRONG)


class GlobalState(Rule):
    """A global that is computed from its old value on each call is frozen at export.

    ## What it does
    Finds `global steps` with `steps += 1`, or `last = 0.9 * last + x`, in traced code; `nonlocal` as well. A global that
    is only set is fine.

    ## Why it matters
    The exported program has no globals of Python: it keeps the value that stood there while tracing, and every call
    starts from it. A buffer is part of the program, and so are its updates.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code = "EXL214"
    name = "global-state"
    outcome = Outcome(BAKED, BAKED)
    no_fix = (
        "whether the value shall go on in the exported program is for you to say: keep it in a buffer of the "
        "model, or hand it in"
    )
    places = (NameWrite,)
    examples = (
        Example(
            bad="""
from torch import nn

steps = 0


class M(nn.Module):
    def forward(self, x):
        global steps
        steps += 1
        return x + steps
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
import torch
from torch import nn

mean = torch.zeros(4)


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        global mean
        mean = 0.5 * mean + x[0]
        return x - mean
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor):
        self.mean.copy_(0.5 * self.mean + x[0])
        return x - self.mean
""",
            outcome=_TENSOR,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, NameWrite)
        statement = _counting(place)
        if place.old is None or statement is None:
            return
        if all(isinstance(option, (Const, Static, Shape)) for option in options(place.value)):
            yield self.report(
                place,
                f"`{place.name}` is a number of Python: the exported program keeps the value that it had while tracing. "
                "Make it a buffer of the model.",
            )
        elif (
            isinstance(statement, ast.Assign)
            and is_tensor(place.value)
            and all(isinstance(option, Tensor) for option in options(place.old))
        ):
            yield self.report(
                place,
                f"`{place.name}` is bound to a new tensor computed from the old one: the exported program forgets it "
                "after each call. Make it a buffer of the model and write in place.",
                outcome=_TENSOR,
            )


def _counting(place: NameWrite) -> ast.Assign | ast.AugAssign | None:
    """The statement that computes the name from itself, if it is one."""
    for outer in ancestors(place):
        if isinstance(outer, ast.AugAssign):
            return outer
        if isinstance(outer, ast.Assign):
            read = (node.id for node in ast.walk(outer.value) if isinstance(node, ast.Name))
            return outer if place.name in read else None
        if isinstance(outer, ast.stmt):
            return None
    return None
