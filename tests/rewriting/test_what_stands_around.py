"""Branches and states that no rewrite may touch for what stands around them, or holds the same tensor."""

from __future__ import annotations

import textwrap

import pytest
import torch

from tests.rewriting.driving import assert_equivalent, model
from tests.rewriting.fixing_all import mend

HEAD = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
INIT = """
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.stats = {}
        self.level = torch.zeros(4)
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x: torch.Tensor):
"""

REFUSED = {
    "a handler that would catch what torch.cond raises": (
        "try:\n    if x.sum() > 0:\n        y = torch.linalg.inv(x)\n    else:\n        y = torch.linalg.pinv(x)\n"
        "except RuntimeError:\n    y = x\nreturn y",
        "would be caught",
    ),
    "a layer under torch.autocast that keeps statistics": (
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n    y = self.linear(x)\n    if y.abs().max() > 1:\n"
        "        y = self.norm(y)\nreturn y",
        "a layer that keeps statistics",
    ),
    "rows under torch.autocast that a mask picks": (
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n    y = self.linear(x).sum(1)\n    if y.abs().max() > 1:\n"
        "        y = y[y > 0].sum() + y\nreturn y",
        "picks rows by a mask",
    ),
    "an item that may not be there": (
        "if x.sum() > 0:\n    self.stats['sum'] = x.sum()\n    x = x * 2\nreturn x",
        "changes `self.stats`",
    ),
    "a state of another dtype than its buffer": (
        "self.count = self.count * 0.9 + x.mean()\nreturn x - self.count",
        "another dtype",
    ),
    "another name by which the state is written": (
        "self.state = self.state * 0.5 + x[0]\nlast = self.state\nlast += 1\nreturn x + self.state",
        "`last` keeps the tensor of `self.state`",
    ),
    "a state that is the input, which is written later": (
        "if x.sum() > self.state.sum():\n    self.state = x[0].detach()\nx.add_(1)\nreturn self.state * x",
        "`self.state` may share memory with `x`",
    ),
    "a state that another method sets to a number": (
        "self.level = self.level * 0.5 + x\nreturn x + self.level\n\ndef reset(self):\n    self.level = 0",
        "`self.level = 0` sets what would be a buffer",
    ),
    "memory that .data is given, and that is written later": (
        "self.state.data = x[0]\nx += 1\nreturn x + self.state",
        "shares its memory with what it is assigned to",
    ),
    "two names that one statement binds": (
        "a = b = x.clone()\nif x.sum() > 0:\n    a += 1\nelse:\n    b = b * 2\nreturn a, b",
        "known there under several names",
    ),
}


@pytest.mark.parametrize(("body", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(body: str, words: str) -> None:
    text = (
        HEAD + INIT.lstrip("\n") + textwrap.indent(body, "        ").replace("        def", "    def") + "\n"
    )
    mended = mend(text)
    assert mended.text == text
    assert any(words in each for each in mended.refusals), mended.refusals


@pytest.mark.parametrize(
    "context",
    [
        "torch.autocast('cpu', dtype=torch.bfloat16)",
        "cast",
        "torch.autocast('cpu') if x.shape[0] > 2 else torch.no_grad()",
    ],
)
def test_both_arms_run_where_torch_autocast_chooses_dtypes(context: str) -> None:
    body = (
        f"cast = torch.autocast('cpu', dtype=torch.bfloat16)\nwith {context}:\n    y = self.linear(x)\n"
        "    if y.abs().max() > 1:\n        y = y / 2\n    else:\n        y = self.linear(y)\nreturn y"
    )
    text = HEAD + INIT.lstrip("\n") + textwrap.indent(body, "        ") + "\n"
    mended = mend(text)
    assert "torch.cond" not in mended.text and "torch.where(y.abs().max() > 1, one, other)" in mended.text
    x = torch.arange(12.0).reshape(3, 4)
    assert_equivalent(text, mended.text, [(x,), (x / 100,), (-x,)])


WITHOUT_GRADIENTS = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def halved(self, x):
        while x.abs().max() > 1:
            if x.mean() > 0:
                x = x * 0.5
            else:
                x = x * 0.25
        return x

    @torch.no_grad()
    def forward(self, x):
        small = self.halved(self.linear(x))
        return self.linear(x) + small
"""


def test_gradients_stay_switched_off_in_eager_around_a_branch_in_a_branch() -> None:
    mended = mend(WITHOUT_GRADIENTS).text
    assert "with contextlib.nullcontext() if torch.compiler.is_exporting() else torch.no_grad():" in mended
    assert "import contextlib\n" in mended
    x = torch.arange(12.0).reshape(3, 4)
    assert not model(mended)(x).requires_grad
    assert_equivalent(WITHOUT_GRADIENTS, mended, [(x,), (-x,), (x * 0,)])


@pytest.mark.parametrize("change", ["forward", "parameter"])
def test_gradients_are_not_recorded_where_they_would_be_used_or_refused(change: str) -> None:
    text = WITHOUT_GRADIENTS
    if change == "forward":
        text = (
            text.replace("def forward", "def bounded")
            + "\n    def forward(self, x):\n        return x * self.bounded(x)\n"
        )
    else:
        text = text.replace("        small =", "        self.linear.weight.mul_(0.5)\n        small =")
    mended = mend(text)
    assert "nullcontext" not in mended.text
    assert any("under `no_grad`" in each for each in mended.refusals)


def test_text_that_parts_of_the_same_class_hand_back_is_not_chosen_by_a_branch() -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Tree(nn.Module):\n    def __init__(self, depth):\n        super().__init__()\n"
        "        self.depth = depth\n        self.gate = nn.Linear(4, 1)\n        if depth > 0:\n            self.left = Tree(depth - 1)\n"
        "            self.right = Tree(depth - 1)\n\n    def forward(self, x, path={}):\n        if self.depth == 0:\n"
        "            return x, path\n        gate = self.gate(x).sum()\n        a, left = self.left(x, path + {})\n"
        "        b, right = self.right(x, path + {})\n"
        "        way = right if gate > 0 else left\n        return a + b, way\n"
    )
    mended = mend(text.format('""', '"L"', '"R"'))
    assert "torch.cond" not in mended.text
    assert any("it is not known whether" in each for each in mended.refusals), mended.refusals
    assert "torch.cond" in mend(text.format("None", "x", "x").replace("path + x", "x")).text


def test_a_row_that_is_written_through_stays_a_view() -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x, places: torch.Tensor):\n"
        "        out = x * 0\n        for n in range(2):\n            out[places[n] + 1][n] {}= 1\n        return out\n\n\n"
        "def inputs():\n    return [(torch.randn(4, 3), torch.tensor([1, 2]))]\n"
    )
    for operator in ("", "+"):
        mended = mend(text.format(operator))
        assert f"out[places[n] + 1][n] {operator}= 1" in mended.text
        assert any("is a view, an index tensor would give a copy" in each for each in mended.refusals)
