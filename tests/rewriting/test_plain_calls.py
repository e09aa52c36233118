"""Calls that strict tracing does not follow: mended, exported in both modes, and equal."""

from __future__ import annotations

import pytest

from tests.rewriting.bodies import assert_mended, assert_refused

HEAD = """import copy
from typing import List

import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [1.0, 2.0]
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor, y: torch.Tensor):
"""
MENDED = {
    "powers": (
        "return pow(x, 2) + pow(x - y, 2) * -pow(y, 1 + 1) + pow(x.abs() + 1, 0.5).sum()",
        "return x ** 2 + (x - y) ** 2 * -y ** (1 + 1) + ((x.abs() + 1) ** 0.5).sum()",
    ),
    "a power in a power": ("return 2 ** pow(x, 2)", "return 2 ** (x ** 2)"),
    "a list and a dict": (
        "scales = copy.copy(self.scales)\nscales.append(3.0)\nkept = copy.copy({'y': y})\nkept['x'] = x\n"
        "return kept['x'] * sum(scales) + kept['y']",
        "scales = self.scales.copy()\nscales.append(3.0)\nkept = {'y': y}.copy()\nkept['x'] = x\n"
        "return kept['x'] * sum(scales) + kept['y']",
    ),
    "a class": (
        "return x + 1 if torch.jit.isinstance(y, torch.Tensor) else x",
        "return x + 1 if isinstance(y, torch.Tensor) else x",
    ),
    "a list of a class": (
        "parts = [x, y]\nif torch.jit.isinstance(parts, List[torch.Tensor]):\n    return parts[0]\nreturn y",
        "parts = [x, y]\nif (isinstance(parts, list) and all(isinstance(item, torch.Tensor) for item in parts)):\n"
        "    return parts[0]\nreturn y",
    ),
    "the class of a tensor": (
        "if type(y) == torch.Tensor and type(x) not in (list, torch.Tensor):\n    return x\nreturn x - y if type(x) is not torch.Tensor "
        "else x + y",
        "if isinstance(y, torch.Tensor) and (not isinstance(x, (list, torch.Tensor))):\n    return x\n"
        "return x - y if (not isinstance(x, torch.Tensor)) else x + y",
    ),
    "the class of a parameter": (
        "return x if type(self.weight) == nn.Parameter else y",
        "return x if isinstance(self.weight, nn.Parameter) else y",
    ),
    "numbers drawn in place": (
        "kept = torch.empty(3, 4).random_(2)\nnoise = torch.zeros_like(x)\nnoise.random_(0, 3)\nreturn x * kept + noise",
        "kept = torch.randint_like(torch.empty(3, 4), 2)\nnoise = torch.zeros_like(x)\n"
        "noise.copy_(torch.randint_like(noise, 0, 3))\nreturn x * kept + noise",
    ),
    "numbers drawn in an arm": (
        "if x.sum() > 9:\n    x = x + torch.empty_like(x).random_(2)\nreturn x + y",
        "def if_true(x=x):\n    x = x + torch.randint_like(torch.empty_like(x), 2)",
    ),
}
REFUSED = {
    "numbers of no given size": (
        "return x + torch.empty_like(x).random_()",
        "up to which number is drawn is not written",
    ),
    "numbers drawn from one that may be the last": (
        "return x + torch.empty_like(x).random_(5, None)",
        "up to which number is drawn is not written",
    ),
    "what torch has no shape of, in an arm": (
        "if x.sum() > 0:\n    y = torch.linalg.lstsq(x, y).solution\nelse:\n    y = x.T @ y\nreturn y",
        "cannot be traced either and has no fix",
    ),
    "a power modulo": ("return x * pow(3, 2, 5) + pow(x, *[2])", "not written one by one"),
    "a sequence that may hold sequences": (
        "sizes = [x.shape[0], 2]\nfor _ in range(np.prod(sizes)):\n    x = x + y\nreturn x",
        "whether `sizes` is one sequence of numbers is not known",
    ),
    "a number that is used as an array": (
        "size = np.ceil(np.sqrt(x.shape[1]))\nif size > 1:\n    x = x + size.astype(np.float32)\nreturn x",
        "what only numbers of NumPy's have",
    ),
    "an array": (
        "if np.array(x.shape).any():\n    x = x + y\nreturn x",
        "no counterpart in `math`",
    ),
    "a dict of a class": (
        "from typing import Dict\nreturn x if torch.jit.isinstance(y, Dict[str, torch.Tensor]) else y",
        "takes classes alone",
    ),
}


def test_mended() -> None:
    assert_mended(HEAD, MENDED)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(HEAD, *REFUSED[name])
