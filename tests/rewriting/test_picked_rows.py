"""Rows that a mask picks before a branch move into its arms where these alone use them, and stay where they are otherwise."""

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
    def forward(self, x, y):
        mask = y > 0
"""
X = torch.arange(12.0).reshape(4, 3)
INPUTS = [(X.clone(), torch.tensor(y)) for y in ([0, 1, 2, 0], [0, 0, 0, 0], [1, 2, 1, 2])]
MOVED = {
    "two of one mask": """
        p = x[mask]
        q = (x * 2)[mask]
        loss = x.sum() * 0
        if mask.sum() > 0:
            loss = F.mse_loss(p, q)
        return loss
    """,
    "asked by its length": """
        p = x[mask]
        q = x[mask].float()
        if len(p) == 0:
            return x.sum() * 0
        return F.l1_loss(p * 3, q)
    """,
    "on both ways": """
        p = x[mask]
        q = y[mask]
        if (x > 5).any():
            loss = (p.sum(1) * q).sum()
        else:
            loss = (p.sum(1) + q).sum()
        return loss
    """,
}
STAYS = {
    "used afterwards": """
        p = x[mask]
        if mask.any():
            loss = p.sum() * 2
        else:
            loss = x.sum() * 0
        return loss + p.sum()
    """,
    "bound anew in between": """
        p = x[mask]
        mask = y > 1
        if mask.any():
            loss = p.sum() * 2
        else:
            loss = x.sum() * 0
        return loss
    """,
    "written in between": """
        x = x.clone()
        p = x[mask]
        x[0] = 7.0
        if mask.any():
            loss = p.sum() * 2
        else:
            loss = x.sum() * 0
        return loss
    """,
    "asked for its values": """
        p = x[mask]
        if p.sum() > 3:
            loss = p.sum() * 2
        else:
            loss = x.sum() * 0
        return loss
    """,
}


def text_of(body: str) -> str:
    return HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"


@pytest.mark.parametrize("body", MOVED.values(), ids=MOVED)
def test_rows_are_picked_in_the_arms(body: str) -> None:
    mended = mend(text_of(body)).text
    assert mended.index("def if_true") < mended.index("p = x[mask]")
    assert_equivalent(text_of(body), mended, INPUTS)


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_rows_stay_where_they_are_picked(body: str) -> None:
    mended = mend(text_of(body)).text
    assert mended.index("p = x[mask]") < mended.index("def if_true")
    assert_equivalent(text_of(body), mended, INPUTS)
