"""Losses of two tensors that a mask picks, each by itself: torch is told that as many are picked of both."""

from __future__ import annotations

import textwrap

import pytest
import torch

from tests.rewriting.driving import assert_equivalent
from tests.rewriting.fixing_all import mend

HEAD = """import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.criterion = nn.BCELoss()

    def forward(self, x, y, mask):
"""
MASKS = ([[1, 0, 1], [1, 1, 0]], [[0, 0, 1], [0, 0, 0]], [[1, 1, 1], [1, 1, 1]])
INPUTS = [
    (torch.linspace(0.1, 0.9, 6).view(2, 3), torch.linspace(0.9, 0.2, 6).view(2, 3), torch.tensor(mask) > 0)
    for mask in MASKS
]
SAID = {
    "by masked_select": """
        p = torch.masked_select(x, mask)
        q = y.masked_select(mask)
        return F.mse_loss(p, q)
    """,
    "in the call": """
        total = x.sum()
        total += F.smooth_l1_loss(x[mask == 1], y[mask == 1], reduction="sum")
        return total
    """,
    "by a layer": """
        mask = mask > 0
        p = torch.sigmoid(x).view(-1)[mask.view(-1)]
        q = y.view(-1)[mask.view(-1)]
        return self.criterion(p.double(), q.double())
    """,
    "in an arm": """
        if mask.sum() > 2:
            return F.l1_loss(x.masked_select(mask), y.masked_select(mask))
        return x.sum()
    """,
    "under the names of what they are picked of": """
        if mask is not None:
            x, y = x[mask > 0], y[mask > 0]
        return F.l1_loss(x, y)
    """,
}
REFUSED = {
    "bound anew in between": """
        p = torch.masked_select(x, mask)
        mask = mask | True
        q = torch.masked_select(y, mask)
        return F.mse_loss(p, q[:1])
    """,
    "two masks": """
        p = x[mask == 1]
        q = y[~mask]
        return F.mse_loss(p, q)
    """,
}


def text_of(body: str) -> str:
    return HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"


@pytest.mark.parametrize("body", SAID.values(), ids=SAID)
def test_as_many_are_said_to_be_picked(body: str) -> None:
    mended = mend(text_of(body)).text
    assert mended.count("torch._check(") == 1
    assert mend(mended).text == mended
    assert_equivalent(text_of(body), mended, INPUTS)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_nothing_is_said_of_other_picks(body: str) -> None:
    assert mend(text_of(body)).text == text_of(body)
