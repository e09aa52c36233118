"""Which plain objects do not become Modules: what would be lost, or would be told from before, stays as it is."""

from __future__ import annotations

import pytest
from exportlens.rewriting.state.plain_objects import OF_MODULES
from torch import nn

from tests.rewriting.fixing_all import mend

MODEL = """import torch
from torch import nn


class Mean:
    def __init__(self):
        self.value = torch.zeros(4)

    def update(self, x):
        self.value = 0.9 * self.value + 0.1 * x.mean(0)
        return self.value


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = Mean()

    def forward(self, x: torch.Tensor):
        return x - self.mean.update(x)
"""
REFUSED = [
    ("self.mean = Mean()", "self.mean, self.count = Mean(), 0", "as an attribute"),
    (
        "        super().__init__()\n        self.mean = Mean()",
        "        self.mean = Mean()\n        super().__init__()",
        "before",
    ),
    (
        "class M(nn.Module)",
        "class Other(Mean):\n    def __init__(self):\n        self.first = 0\n        super().__init__()\n\n\nclass M(nn.Module)",
        "`Other` is no Module, and does not begin with the constructor",
    ),
    ("class Mean:", "from abc import ABC\n\n\nclass Mean(ABC):", "more than a plain class"),
    (
        "self.mean = Mean()",
        "self.mean = [Mean(), nn.Identity()]\n        self.mean = self.mean[0]",
        "among others",
    ),
    ("self.mean = Mean()", "self.means = means = [Mean()]\n        self.mean = means[0]", "as an attribute"),
    ("self.mean = Mean()", "self.mean = {f'{i}': Mean() for i in range(2)}['0']", "as an attribute"),
    ("self.mean = Mean()", "self.mean = print(Mean()) or Mean()", "as an attribute"),
    ("self.mean = Mean()", "mean = Mean()\n        self.mean, self.other = mean, [mean]", "as an attribute"),
    (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mean = Mean()",
        "class Keeper(nn.Module):\n    def __init__(self, mean):\n        self.mean = mean\n        super().__init__()\n\n\n"
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mean = Mean()\n        self.keeper = Keeper(self.mean)\n"
        "        self.other = Keeper(Mean())",
        "is made before",
    ),
    (
        "    def update",
        "    def __len__(self):\n        return 4\n\n    def update",
        "a `__len__` of its own",
    ),
    ("update", "forward", "a `forward` of its own"),
    ("class Mean:", "class Mean(metaclass=type):", "more than a plain class"),
    (
        "torch.zeros(4)\n",
        "torch.zeros(4)\n        self.weight = nn.Parameter(torch.ones(4))\n",
        "parameters or Modules",
    ),
]


def test_a_plain_object_becomes_a_module() -> None:
    mended = mend(MODEL).text
    assert "class Mean(nn.Module):\n    def __init__(self):\n        super().__init__()\n" in mended
    assert "self.value.copy_(" in mended


@pytest.mark.parametrize(("old", "new", "reason"), REFUSED, ids=[reason for _, _, reason in REFUSED])
def test_what_is_no_plain_holder_stays_a_class(old: str, new: str, reason: str) -> None:
    text = MODEL.replace(old, new)
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals


def test_no_attribute_is_a_name_that_a_module_has() -> None:
    names = {name for name in dir(nn.Module()) if not name.startswith("__")}
    assert names <= OF_MODULES


STATS = """from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Stats:
    mean: float = 0.0

    def observe(self, v: float):
        self.mean = 0.9 * self.mean + 0.1 * v


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.stats = Stats()

    def forward(self, x: torch.Tensor):
        self.stats.observe(x.mean().item())
        return x - self.stats.mean
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("        return x", "        print(self.stats)\n        return x", "used as a whole"),
        (
            "        return x",
            "        if self.stats == Stats(1.0):\n            x = x * 2\n        return x",
            "used as a whole",
        ),
        ("Stats()", "[Stats()][0]", "used as a whole"),
        ("class M", "class Others(Stats):\n    pass\n\n\nclass M", "used as a whole"),
        (
            "    def observe",
            "    def __post_init__(self):\n        self.mean += 1.0\n\n    def observe",
            "more than a holder",
        ),
        ("@dataclass\n", "@dataclass(order=True)\n", "more than a plain class"),
    ],
)
def test_a_dataclass_that_is_more_than_a_holder(old: str, new: str, reason: str) -> None:
    text = STATS.replace(old, new)
    mended = mend(text)
    assert "class Stats(nn.Module)" in mend(STATS).text
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals


STOPPER = """import torch
from torch import nn


class Best:
    def __init__(self):
        self.best = None

    def step(self, loss):
        if self.best is None:
            self.best = loss
        elif loss < self.best:
            self.best = loss
        return self.best


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = Best()

    def forward(self, x: torch.Tensor):
        return x / self.best.step(x.abs().mean().item())
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        # A None is equal to no number, and can be returned.
        ("if self.best is None", "same = self.best == loss\n        if self.best is None", "may be None"),
        ("def step", "def last(self):\n        return self.best\n\n    def step", "may be None"),
        (
            "elif loss < self.best:\n            self.best = loss",
            "else:\n            self.best = torch.zeros(2)",
            "to set a number",
        ),
    ],
)
def test_a_none_that_is_more_than_no_number_yet(old: str, new: str, reason: str) -> None:
    text = (
        STOPPER.replace(old, new)
        .replace("self.best = Best()", "self.kept = Best()")
        .replace("self.best.step", "self.kept.step")
    )
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals
