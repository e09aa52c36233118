"""What is drawn from a generator that each call makes anew is drawn as it was where it may differ, or is not known to be a number."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewriting.fixing_all import mend

HEAD = """import random

import numpy as np
import torch
from mixing import mixed
from torch import nn


class M(nn.Module):
    def __init__(self, seed=3, count=2, other=None, order=(0, 1)):
        super().__init__()
        self.seed = seed
        self.count = count
        self.step = 0
        self.other = other
        self.order = order
        self.layer = nn.Linear(4, 4)

    def turn(self):
        self.step += 1

    def mixed(self, x):
        return x * np.random.wald(1, 2)

    def forward(self, x):
"""
PYTHON, NUMPY = "rng = random.Random(self.seed)\n", "rng = np.random.RandomState(self.seed)\n"

REFUSED = [
    (
        PYTHON + "if rng.random() < 0.5:\n    x = x * rng.random()\nreturn x * rng.random()",
        "under a condition",
    ),
    (PYTHON + "return x * sum(rng.random() for _ in range(3))", "several times"),
    (PYTHON + "return x if self.count > 3 or rng.random() > 0.5 else x * 2", "under a condition"),
    (PYTHON + "while rng.random() > 0.5:\n    x = x * 2\nreturn x", "under a condition"),
    (
        PYTHON + "for _ in range(self.step + 2):\n    x = x * rng.random()\nreturn x",
        "is the same in each call",
    ),
    (PYTHON + "for row in x:\n    x = x * rng.random()\nreturn x", "how many rounds"),
    (
        PYTHON + "for i in range(3):\n    if i > 1:\n        x = x * rng.random()\nreturn x",
        "under a condition",
    ),
    (
        PYTHON
        + "for i in range(3):\n    if self.count < i:\n        break\n    x = x * rng.random()\nreturn x",
        "how many rounds",
    ),
    (
        PYTHON + "for _ in range(3):\n    for _ in range(2):\n        x = x * rng.random()\nreturn x",
        "several times",
    ),
    (PYTHON + "for i in range(3):\n    x = x * rng.randint(0, i + 1)\nreturn x", "is the same in each call"),
    (
        PYTHON + "for i in range(3):\n    n = [1, 2]\n    rng.shuffle(n)\n    x = x * n[0]\nreturn x",
        "is not known",
    ),
    (
        "np.random.seed(0)\nfor _ in range(2):\n    x = x * np.random.rand()\n    x = self.mixed(x)\nreturn x",
        "works on the same generator",
    ),
    (
        PYTHON + "order = [0, 1]\nkept = order\nrng.shuffle(order)\nreturn x[:, kept]",
        "is read before it is shuffled",
    ),
    (
        PYTHON + "order = [0, 1]\nrng.shuffle(order)\nrng.shuffle(order)\nreturn x[:, order]",
        "shuffled several times",
    ),
    (PYTHON + "order = [0, 1]\nrng.shuffle(order)\nreturn x * rng.choice(order)", "drawn from behind that"),
    (PYTHON + "rng.shuffle(self.order)\nreturn x[:, self.order]", "is not known to be the same"),
    (
        PYTHON + "order = self.order[:2]\nrng.shuffle(order)\nreturn x[:, order]",
        "to be a list that is made here",
    ),
    (
        PYTHON + "order = [2 * i for i in range(2)]\nrng.shuffle(order)\nreturn x[:, order]",
        "is not known to be the same",
    ),
    (PYTHON + "order = x.tolist()\nrng.shuffle(order)\nreturn x[:, order]", "to be a list that is made here"),
    (PYTHON + "many = [1, 2]\nmany.append(3)\nreturn x * rng.choice(many)", "is a list, and may be written"),
    ("random.seed(self.other)\nreturn x * random.random()", "may be given None"),
    ("random.seed()\nreturn x * random.random()", "is not known to be the same in each call"),
    ("random.seed(self.step)\nreturn x * random.random()", "the same in each call"),
    ("x = x * random.random()\nrandom.seed(self.seed)\nreturn x * random.random()", "under a condition"),
    ("random.seed(0)\nx = x * random.random()\nrandom.seed(1)\nreturn x * random.random()", "the only seed"),
    ("random.seed(0)\nif self.count > 3:\n    return x\nreturn x * random.random()", "may leave out"),
    ("np.random.seed(0)\nx = self.mixed(x)\nreturn x * np.random.rand()", "works on the same generator"),
    ("np.random.seed(0)\nx = mixed(x)\nreturn x * np.random.rand()", "whether `mixed(x)` draws"),
    ("random.seed(0)\nmaker = random\nreturn x * random.random() + maker.random()", "is handed on"),
    (PYTHON + "x = x[:2]\nreturn x * rng.randint(0, x.shape[0])", "bound anew, or given another shape"),
    (PYTHON + "x.t_()\nreturn x * rng.randint(0, x.shape[0])", "bound anew, or given another shape"),
    (PYTHON + "return x * rng.randint(0, x.nonzero().shape[0])", "is the same in each call"),
    (PYTHON + "other = rng\nreturn x * rng.random() + other.random()", "is handed on"),
    (PYTHON + "return x * rng.randint(0, self.step + 1)", "is the same in each call"),
    (PYTHON + "n = 3\nn = n + rng.randint(0, 2)\nreturn x * rng.randint(0, n)", "is the same in each call"),
    (NUMPY + "index = rng.permutation(4)[0]\nreturn x[:, index]", "is not known to be an array"),
    (NUMPY + "order = rng.permutation(4)[::-1]\nreturn x[:, order]", "is not known to be an array"),
    (
        NUMPY + "order = rng.permutation(4)\nreturn x[:, list(order)]",
        "where it becomes a tensor is not known",
    ),
    (NUMPY + "return x * torch.from_numpy(rng.rand(4) + 1)", "where it becomes a tensor is not known"),
]


@pytest.mark.parametrize(("body", "reason"), REFUSED)
def test_refused(body: str, reason: str) -> None:
    text = HEAD + textwrap.indent(body, "        ") + "\n"
    mended = mend(text)
    assert "assume_constant_result" not in mended.text
    assert any(reason in each for each in mended.refusals), mended.refusals


def test_what_python_runs_while_tracing_is_left_to_it() -> None:
    text = HEAD.replace(
        "    def turn",
        "    @torch.compiler.assume_constant_result\n    def drawn(self):\n        random.seed(3)\n        np.random.seed(3)\n"
        "        rng = np.random.RandomState()\n        return self.more() + rng.rand() + random.random()\n\n"
        "    def more(self):\n        return 1 if np.random.rand() > 0.5 else 2\n\n    def turn",
    )
    mended = mend(text + "        return x * self.drawn()\n")
    assert not mended.refusals
    again = mend(text + "        return x * self.drawn() + self.more()\n")
    assert "torch.rand" in again.text or again.refusals


def test_what_follows_the_seed_of_another_method_stays_as_it_was() -> None:
    helper = "    def jittered(self, x):\n        return x * random.gauss(0, 1)\n\n    def turn"
    body = "        random.seed(0)\n        x = x * random.random()\n        return self.jittered(x)\n"
    mended = mend(HEAD.replace("    def turn", helper) + body)
    assert "random.gauss(0, 1)" in mended.text
    assert "`random.seed(0)` in `drawn_by_python_in_forward` may make what" in mended.refusals[0]
