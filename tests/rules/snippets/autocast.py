"""Conversions under torch.autocast: each was exported in strict mode by torch 2.13, and its program run."""

from __future__ import annotations

import textwrap

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def lowered(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.net(x)

    def forward(self, x):
"""
_REGION = "with torch.autocast('cpu', dtype=torch.bfloat16):\n    "
_LOWERED = f"{_REGION}y = self.net(x)\n"


def _model(body: str) -> str:
    return _MODEL + textwrap.indent(body, " " * 8) + "\n"


MUST = {
    "EXL342": [
        _model(f"{_LOWERED}return y.to(x.dtype)"),
        _model(f"{_LOWERED}return y.to('cpu', torch.float32)"),
        _model(f"{_LOWERED}return torch.relu(y).type(torch.float32)"),
        _model(f"{_LOWERED}return x * y.float().mean().item()"),
        _model(f"{_LOWERED}return F.layer_norm(y, (4,)).long()"),
        _model(f"{_REGION}return self.net(x).float()"),
        _model("with torch.autocast(device_type=x.device.type):\n    y = (x @ x.t())[0]\nreturn y.float()"),
        _model("with torch.autocast('cpu', torch.float16):\n    y = F.linear(x, x)\nreturn y.float()"),
        _model(
            f"{_LOWERED}    with torch.autocast('cpu', enabled=False):\n        z = y.float() * 2\nreturn z"
        ),
        _model("return self.lowered(x).float()"),
    ]
}
MUST_NOT = {
    "EXL342": [
        _model(f"{_LOWERED}return y, (x + y).float()"),
        _model(f"{_LOWERED}return y.type_as(x) + (y > 0).float() + y.argmax(-1, keepdim=True).float()"),
        _model(f"{_LOWERED}return x.double() + y.contiguous()"),
        _model(f"{_REGION}y = self.net(x.float())\nreturn y"),
        _model(f"{_REGION}y = torch.relu(x)\nreturn y.float()"),
        _model(f"{_REGION}y = F.mse_loss(self.net(x), x)\nreturn y.float()"),
        _model(f"{_REGION}y = torch.cat([self.net(x), x])\nreturn y.float()"),
        _model("with torch.autocast('cpu', enabled=False):\n    y = self.net(x)\nreturn y.float()"),
        _model("with torch.autocast('cuda', dtype=torch.bfloat16):\n    y = self.net(x)\nreturn y.float()"),
        _model("with torch.cuda.amp.autocast(enabled=False):\n    y = self.net(x)\nreturn y.float()"),
        _model("y = self.lowered(x)\nreturn self.net(x).float() + y"),
    ]
}
