"""Flags that the file sets from outside of the model."""

from __future__ import annotations

_MODEL = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.hard = False
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        if self.hard:
            if y.sum() > 0:
                y = y * 2
        return y


AROUND
"""

# A part whose method sets from which round on it stops, and a flag.
_SET_BY_METHODS = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.rounds = 0
        self.hard = False

    def set_rounds(self, rounds):
        self.rounds = rounds

    def set_hard(self, hard):
        self.hard = hard

    def forward(self, x):
        if self.hard and x.sum() > 0:
            return x * 2
        if self.rounds > 1 and x.mean() > 0:
            return x + 1
        return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        return self.part(x)


AROUND
"""


def _set(around: str) -> str:
    return _SET_BY_METHODS.replace("AROUND", around)


def _model(around: str) -> str:
    return _MODEL.replace("AROUND", around)


MUST = {
    "EXL101": [
        _set("def make():\n    m = M()\n    m.part.set_rounds(2)\n    return m"),
        _set("m = M()\nm.part.set_hard(hard=True)  # decides"),
        _model("def make():\n    model = M()\n    model.hard = True\n    return model"),
        _model("model = M()\nmodel.hard = True  # decides"),
        _model(
            "class Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.part = M()\n\n"
            "    def harden(self):\n        self.part.hard = True\n\n    def forward(self, x):\n        return self.part(x)"
        ),
    ],
}

MUST_NOT = {
    "EXL101": [
        _set("m = M()"),
        _set("m = M()\nm.part.set_hard(False)"),
        _set("m = M()\nm.part.set_rounds(1)"),
        _set("m = M()\nm.part.rounds_of(2)"),
        _model("model = M()\nmodel.hard = False"),
        _model("model = M()\n# model.hard = True"),
        _model("model = M()\nmodel.soft = True"),
        _model("class Other(nn.Linear):\n    def harden(self):\n        self.hard = True"),
    ],
}
