"""State that is written by a computed name: what is refused, and the words that say why."""

from __future__ import annotations

import pytest

from tests.rewriting.fixing_all import mend

MODEL = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("low", "high"):
            setattr(self, name, torch.zeros(4))

    def forward(self, x: torch.Tensor):
        part = x.mean(0)
        for name in ("low", "high"):
            setattr(self, name, 0.9 * getattr(self, name) + part)
        return x - self.low + self.high
"""
REFUSED = [
    ("torch.zeros(4)", "None", "does not always hold one tensor"),
    ("torch.zeros(4)", "torch.zeros(4, dtype=torch.int64)", "of another dtype"),
    ("        return x", "        self.low = x[0]\n        return x", "`self.low` may be the same attribute"),
    (
        "        part = x.mean(0)\n",
        "        part = x.mean(0)\n        if not hasattr(self, part.name):\n            return x\n",
        "whether there is an attribute of the name is asked",
    ),
    (
        "            setattr(self, name, torch.zeros(4))",
        "            setattr(self, name, torch.zeros(4))\n        for name in ('low', 'high'):\n"
        "            setattr(self, name, torch.ones(4))",
        "by one statement",
    ),
    (
        "            setattr(self, name, 0.9 * getattr(self, name) + part)",
        "            part = 0.9 * getattr(self, name) + part\n            setattr(self, name, part)\n            part += 1",
        "`part` is written in place",
    ),
    (
        "\n\nclass M",
        "\n\nclass Other:\n    def reset(self, m):\n        m.low = None\n\n\nclass M",
        "`m.low` may be",
    ),
    ("        super().__init__()\n        for", "        for", "before the Module is made"),
]


@pytest.mark.parametrize(("old", "new", "why"), REFUSED, ids=[why for _, _, why in REFUSED])
def test_refused(old: str, new: str, why: str) -> None:
    text = MODEL.replace(old, new)
    assert text != MODEL
    mended = mend(text)
    assert mended.text == text
    assert any(why in refusal for refusal in mended.refusals)


def test_written_in_place() -> None:
    assert "getattr(self, name).copy_(0.9 * getattr(self, name) + part)" in mend(MODEL).text
