"""Objects that a branch gives back as they were: made anew of their parts, unless that shows."""

from __future__ import annotations

import pytest

from tests.rewriting.fixing_all import mend

_TEXT = """from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Belief:
    mean: torch.Tensor
    count: torch.Tensor


class M(nn.Module):
    def step(self, belief, z):
        if z.sum() < belief.mean.sum():
            return belief
        return Belief(belief.mean + z, belief.count + 1)

    def forward(self, x: torch.Tensor, z: torch.Tensor):
        first = Belief(x + 0, torch.zeros(()))
        second = self.step(first, z)
        {line}
        return second.mean * second.count + first.count
"""


def test_made_of_its_parts() -> None:
    mended = mend(_TEXT.format(line="pass"))
    assert "return belief.mean.clone(), belief.count.clone()" in mended.text
    assert not mended.refusals


@pytest.mark.parametrize(
    "line",
    [
        "second.count = second.count + 5",
        "second.count += 5",
        'setattr(second, "count", z.sum())',
        "x = x + 1 if second is first else x",
        "second.__dict__.update(count=z.sum())",
        "second.mean.add_(1)",
    ],
)
def test_refused_where_it_shows_which_object_it_is(line: str) -> None:
    mended = mend(_TEXT.format(line=line))
    assert "torch.cond(z.sum() < belief" not in mended.text
    assert mended.refusals


def test_another_class_or_none() -> None:
    """What may be None is no object of the class for certain."""
    text = _TEXT.format(line="pass").replace(
        "self.step(first, z)", "self.step(None if x is None else first, z)"
    )
    assert mend(text).text.count("torch.cond") <= 1
