"""Loops over a dynamic number of rows become torch's map or scan: exported with a dynamic batch and compared with the
original's eager results on batches of several sizes, or refused with the reason."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch

from tests.rewriting.driving import assert_equivalent
from tests.rewriting.fixing_all import mend

HEAD = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)

    def forward(self, {parameters}):
"""
MAIN = """

def program():
    size = torch.export.Dim("size")
    inputs = ({inputs})
    return torch.export.export(M(), inputs, dynamic_shapes=({shapes}))
"""

# name: (parameters, body, body afterwards)
MENDED = {
    "rows": (
        "x: torch.Tensor",
        "out = []\nfor row in x:\n    y = torch.relu(row)  # kept\n    out.append(self.linear(y))\nreturn torch.stack(out) + 1",
        "def each_row(row):\n    y = torch.relu(row)  # kept\n    return self.linear(y)\n\n"
        "out = torch._higher_order_ops.map(each_row, x)\nreturn out + 1",
    ),
    "by number, of what is computed before": (
        "x: torch.Tensor",
        "scale = x.mean()\ny = x * 2\nout = []\nfor i in range(y.shape[0]):\n    out.append(y[i, :2] * scale)\n"
        "return torch.stack(out, dim=0)",
        "scale = x.mean()\ny = x * 2\n\ndef each_row(row):\n    return row[:2] * scale\n\n"
        "out = torch._higher_order_ops.map(each_row, y)\nreturn out",
    ),
    "by number, of two tensors": (
        "x: torch.Tensor, y: torch.Tensor",
        "n = x.shape[0]\nout = []\nfor i in range(n):\n    out.append(x[i] @ y[i])\nreturn torch.stack(out)",
        "n = x.shape[0]\n\ndef each_row(rows):\n    x_row, y_row = rows\n    return x_row @ y_row\n\n"
        "out = torch._higher_order_ops.map(each_row, (x, y))\nreturn out",
    ),
    "two tensors at once": (
        "x: torch.Tensor, y: torch.Tensor",
        "return torch.stack([torch.outer(a, b) for a, b in zip(x, y)])",
        "return torch._higher_order_ops.map(lambda rows: torch.outer(rows[0], rows[1]), (x, y))",
    ),
    "a comprehension of views": (
        "x: torch.Tensor",
        "rows = [row[:2] for row in x]\nreturn torch.stack(rows).sum(1)",
        "rows = torch._higher_order_ops.map(lambda row: row[:2].clone(), x)\nreturn rows.sum(1)",
    ),
    "two lists": (
        "x: torch.Tensor",
        "tops = []\nsums = []\nfor _, row in enumerate(x):\n    tops.append(row)\n    row = row * 2\n    sums.append(row.sum())\n"
        "return torch.stack(tops), torch.stack(sums)",
        "def each_row(row):\n    tops_row = row\n    row = row * 2\n    return tops_row.clone(), row.sum()\n\n"
        "tops, sums = torch._higher_order_ops.map(each_row, x)\nreturn tops, sums",
    ),
    "a state from row to row": (
        "x: torch.Tensor",
        "h = torch.zeros(4)\nout = []\nfor row in x:\n    h = torch.tanh(self.linear(row) + h)\n    out.append(h)\n"
        "return torch.stack(out), h",
        "h = torch.zeros(4)\n\ndef each_row(h, row):\n    h = torch.tanh(self.linear(row) + h)\n    return h, h.clone()\n\n"
        "h, out = torch._higher_order_ops.scan(each_row, h, x)\nreturn out, h",
    ),
    "two states and no list": (
        "x: torch.Tensor",
        "total = x.new_zeros(4)\npeak = x[0]\nfor i in range(len(x)):\n    total = total + x[i]\n    peak = torch.maximum(peak, x[i])\n"
        "return total - peak",
        "total = x.new_zeros(4)\npeak = x[0]\n\ndef each_row(state, row):\n    total, peak = state\n    total = total + row\n"
        "    peak = torch.maximum(peak, row)\n    return (total, peak), ()\n\n"
        "(total, peak), _ = torch._higher_order_ops.scan(each_row, (total, peak.clone()), x)\nreturn total - peak",
    ),
    "a branch on data in each round": (
        "x: torch.Tensor",
        "out = []\nfor row in x:\n    if row.sum() > 0:\n        row = row * 2\n    out.append(row)\nreturn torch.stack(out)",
        None,
    ),
}
REFUSED = {
    "the number of the row": (
        "out = []\nfor i, row in enumerate(x):\n    out.append(row * i)\nreturn torch.stack(out)",
        "the row's number, is used",
    ),
    "a neighbour": (
        "out = []\nfor i in range(x.shape[0]):\n    out.append(x[i] - x[i - 1])\nreturn torch.stack(out)",
        "does more than pick a row",
    ),
    "all rows in each round": (
        "out = []\nfor row in x:\n    out.append(row - x.mean(0))\nreturn torch.stack(out)",
        "shares memory with all rows",
    ),
    "another list than a stacked one": (
        "out = []\nfor row in x:\n    out.append(row * 2)\nreturn out",
        "used for more than `torch.stack`",
    ),
    "another dimension": (
        "return torch.stack([row * 2 for row in x], dim=1)",
        "used for more than `torch.stack`",
    ),
    "for some rows only": (
        "out = []\nfor row in x:\n    if self.training:\n        out.append(row * 2)\nreturn torch.stack(out)",
        "for some rows only",
    ),
    "a round that leaves": (
        "out = []\nfor row in x:\n    if row.dim() > 3:\n        break\n    out.append(row * 2)\nreturn torch.stack(out)",
        "may leave early",
    ),
    "a number as state": (
        "total = 0\nfor row in x:\n    total = total + row.sum()\nreturn total",
        "does not start as a tensor",
    ),
    "written items": (
        "out = torch.zeros_like(x)\nfor i in range(x.shape[0]):\n    out[i] = x[i] * 2\nreturn out",
        "does more than pick a row",
    ),
    "written rows": (
        "out = []\nfor row in x:\n    row += 1\n    out.append(row)\nreturn torch.stack(out)",
        "writes `row` in place",
    ),
    "the last row": (
        "out = []\nfor row in x:\n    y = row * 2\n    out.append(y)\nreturn torch.stack(out) + y",
        "of the last row is used after",
    ),
    "unpacking": ("a, b, c = x\nreturn a + b + c", "only a `for` statement or a comprehension"),
}


def text_of(parameters: str, body: str) -> str:
    count = parameters.count(":")
    inputs, shapes = "torch.randn(3, 4), " * count, "{0: size}, " * count
    main = MAIN.format(inputs=inputs.strip(), shapes=shapes.strip())
    return HEAD.format(parameters=parameters) + textwrap.indent(body, " " * 8) + "\n" + main


@pytest.mark.parametrize("name", MENDED)
def test_mended_and_equal_for_any_number_of_rows(name: str) -> None:
    parameters, body, expected = MENDED[name]
    text = text_of(parameters, body)
    mended = mend(text)
    if expected is not None:
        assert mended.text == text_of(parameters, expected)
    assert mended.text != text
    assert not mended.refusals
    count = parameters.count(":")
    torch.manual_seed(3)
    inputs: list[tuple[Any, ...]] = [
        tuple(torch.randn(size, 4) for _ in range(count)) for size in (3, 2, 5, 1)
    ]
    shapes = tuple({0: torch.export.Dim("size")} for _ in range(count))
    # Without its compiler, scan hands its function another structure than it was given.
    assert_equivalent(text, mended.text, inputs, dynamic_shapes=shapes, compiled=len(inputs))


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_reason(name: str) -> None:
    body, reason = REFUSED[name]
    text = text_of("x: torch.Tensor", body)
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals
