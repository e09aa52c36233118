"""State that a method begins which no call leads to, and that each call reads and binds anew."""

from __future__ import annotations

_HEAD = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def start(self, level):
        self.level = level
        self.before = level
        self.seen = None

    def blend(self, x):
        return x - self.level

    def forward(self, x: torch.Tensor):
        FORWARD
"""


def _model(forward: str, around: str = "") -> str:
    return _HEAD.replace("FORWARD", forward.replace("\n", "\n        ")) + around


_IN_CALL = """

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = M()

    def forward(self, x: torch.Tensor, level: torch.Tensor):
        self.part.start(level)
        for _ in range(3):
            x = self.part(x)
        return x
"""

MUST = {
    "EXL206": [
        _model("self.level = 0.9 * self.level + x.mean(0)\nreturn x - self.level"),
        _model("y = self.blend(x)\nself.level = x.mean(0)\nreturn y"),
        _model(
            "y = x - self.before\nself.before = self.level\nself.level = x.mean(0)\nreturn y + self.level"
        ),
        _model("y = torch.tanh(self.layer(x) + self.level)\nself.level = y\nreturn y"),
    ],
}

MUST_NOT = {
    "EXL206": [
        # bound before it is read
        _model("self.level = x.mean(0)\nreturn self.blend(x)"),
        # only what it looks like is read
        _model("y = x.view(self.level.shape)\nself.level = y\nreturn y"),
        # begun in each call
        _model("self.start(x.mean(0))\ny = self.blend(x)\nself.level = y.mean(0)\nreturn y"),
        _model("y = self.blend(x)\nself.level = x.mean(0)\nreturn y", _IN_CALL),
        _model("y = self.blend(x)\nself.level = x.mean(0)\nself.level = None\nreturn y"),
        # nothing has begun it
        _model("y = self.blend(x)\nself.last = y\nreturn y"),
        _model("if self.seen is not None:\n    x = x + 1\nself.seen = x\nreturn x"),
    ],
}
