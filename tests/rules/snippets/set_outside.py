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


def _model(around: str) -> str:
    return _MODEL.replace("AROUND", around)


MUST = {
    "EXL101": [
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
        _model("model = M()\nmodel.hard = False"),
        _model("model = M()\n# model.hard = True"),
        _model("model = M()\nmodel.soft = True"),
        _model("class Other(nn.Linear):\n    def harden(self):\n        self.hard = True"),
    ],
}
