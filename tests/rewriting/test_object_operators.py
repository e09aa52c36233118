"""Operators of objects that stay as they are, and the words that say why."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.bodies import HEAD
from tests.rewriting.fixing_all import mend

_OBJECT = """
import os

STRANGE = os.environ.get("STRANGE")


class Step:
    def __init__(self, v):
        self.v = v

    def __matmul__(self, other):
        if STRANGE:
            return NotImplemented
        return self

    def __add__(self, other):
        return Step(self.v + other)

    __radd__ = __add__


def added(left, right: torch.Tensor):
    return left + right


"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return (Step(x) @ Step(x)).v", "`__matmul__` may give NotImplemented"),
        (
            "return (torch.relu(x) + Step(x.cos())).v",
            "the right operand would be computed before the left one",
        ),
        ("steps = [Step(x)]\nsteps[max(0, -1)] += x\nreturn steps[0].v", "what is written is computed"),
        ("return added(Step(x), x).v + added(2.0, x)", "`added` is called in several places"),
    ],
)
def test_operators_that_stay(body: str, reason: str) -> None:
    text = HEAD.replace("class M", _OBJECT.lstrip("\n") + "class M")
    text += f"    def forward(self, x: torch.Tensor):\n{textwrap.indent(body, '        ')}\n"
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals
