"""State that a method begins before the model runs: `reset`, which no call leads to."""

from __future__ import annotations

_HEAD = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def reset(self, n):
        BEGIN

    def change(self, x):
        return self.layer(x - self.last)

    def forward(self, x: torch.Tensor):
        FORWARD
"""


def _model(begin: str, forward: str) -> str:
    return _HEAD.replace("BEGIN", begin).replace("FORWARD", forward.replace("\n", "\n        "))


_PAIR = "h, c = self.state\nc = self.layer(x) + h * c\nself.state = c.tanh(), c\nreturn c"
_LIST = (
    "new = []\nfor h in self.state:\n    x = self.layer(x) + h\n    new.append(x)\nself.state = new\nreturn x"
)

MUST: dict[str, list[str]] = {
    "EXL206": [
        _model("self.h = torch.zeros(n, 4)", "x = self.layer(x) + self.h\nself.h = x.tanh()\nreturn x"),
        _model("self.state = torch.zeros(n, 4), torch.zeros(n, 4)", _PAIR),
        _model("self.state = [torch.zeros(n, 4)] * 2", _LIST),
        _model("self.last = torch.zeros(n, 4)", "y = self.change(x)\nself.last = x * 2\nreturn y"),
    ],
}
MUST_NOT: dict[str, list[str]] = {
    "EXL206": [
        # Each call begins it anew.
        _model(
            "self.h = torch.zeros(n, 4)",
            "self.reset(3)\nx = self.layer(x) + self.h\nself.h = x.tanh()\nreturn x",
        ),
        # No call reads what the last one left.
        _model("self.h = torch.zeros(n, 4)", "self.h = self.layer(x)\nreturn self.h * 2"),
        _model("self.last = torch.zeros(n, 4)", "self.last = x * 2\nreturn self.change(x)"),
        # Nothing but a conversion.
        _model("self.h = torch.zeros(n, 4)", "self.h = self.h.to(x.device)\nreturn self.layer(x) + self.h"),
        # Bound in the call before it is read.
        _model("self.h = None", "self.h = self.layer(x)\ny = self.h * 2\nself.h = y\nreturn y"),
    ],
}
