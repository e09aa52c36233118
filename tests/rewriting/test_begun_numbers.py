"""Numbers that a Module counts and begins with what its constructor is given: refused where they may be ints or floats."""

from __future__ import annotations

import pytest

from tests.rewriting.fixing_all import mend

BEFORE = """import torch
from functools import partial
from torch import nn


class Net(nn.Module):
    def __init__(self, {parameter}):
        super().__init__()
        self.steps = start

    def forward(self, x: torch.Tensor):
        y = x * self.steps
        self.steps += {step}
        return y


"""


@pytest.mark.parametrize(
    ("parameter", "step", "others"),
    [
        ("start", "1", ""),
        ("start", "1", "nets = [Net(1), Net(0.5)]\n"),
        ("start=1", "1", "net = Net(0.5)\n"),
        ("start: int", "1", "net = Net(0.5)\n"),
        ("start", "1", "net = partial(Net, 2)\nother = Net(3)\n"),
        ("start", "1", "FIRST = 1\nFIRST = 0.5\nnet = Net(FIRST)\n"),
        (
            "start",
            "1",
            "class Other(Net):\n    def __init__(self, value):\n        super().__init__(value)\n",
        ),
        ("start=None", "1", "net = Net()\nother = Net(2)\n"),
    ],
)
def test_of_no_certain_type(parameter: str, step: str, others: str) -> None:
    text = BEFORE.format(parameter=parameter, step=step) + others
    mended = mend(text)
    assert mended.text == text
    assert any("an int or a float" in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize(
    ("parameter", "step", "others", "dtype"),
    [
        ("start", "1", "net = Net(2)\n", ""),
        ("start", "1", "FIRST = 1\nnet = Net(start=FIRST)\n", ""),
        (
            "start",
            "1",
            "class Other(Net):\n    def __init__(self, value=2):\n        super().__init__(value)\n",
            "",
        ),
        ("start", "1", "class Other(Net):\n    pass\n\n\nnet = Other(2.0)\n", ", dtype=torch.float64"),
        ("start: float", "1", "", ", dtype=torch.float64"),
        ("start", "0.5", "", ", dtype=torch.float64"),
        ("start=1.0", "1", "net = Net(2)\n", ", dtype=torch.float64"),
    ],
)
def test_of_one_type(parameter: str, step: str, others: str, dtype: str) -> None:
    mended = mend(BEFORE.format(parameter=parameter, step=step) + others)
    assert f'self.register_buffer("steps", torch.tensor(start{dtype}), persistent=False)' in mended.text
