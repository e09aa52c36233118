"""What a condition says of the rows that a mask picks is said in the arm only where nothing outside picks by that mask: torch
asserts it of the whole program otherwise."""

from __future__ import annotations

import pytest
import torch

from tests.rewriting.driving import assert_equivalent
from tests.rewriting.fixing_all import mend

HEAD = """import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def pick(self, x, mask):
        return x[mask].sum()

    def forward(self, x, y, given=None):
        mask = y > 0
        {}
        if mask.any():
            loss = F.cross_entropy(x[mask], y[mask])
        else:
            loss = x.sum() * 0
        return loss + before
"""
OUTSIDE = {
    "picked before": "before = x[mask].sum()",
    "handed on": "before = self.pick(x, mask)",
    "under another name": "other = mask\n        before = x[other].sum()",
    "as it is, of the same type": "before = x[mask.bool()].sum()",
    "where it is given": "before = x.sum()\n        if mask is not None:\n            before = x[mask].sum()",
    "changed in place": "mask[0] = False\n        before = x.sum()",
}
ALONE = {
    "counted": "before = mask.sum() + mask.float().mean()",
    "another tensor of it": "before = torch.where(~mask, y, 0).sum()",
    "asked twice": "before = x.sum()\n        if mask.any():\n            before = F.cross_entropy(x[mask], y[mask])",
}


@pytest.mark.parametrize("before", OUTSIDE.values(), ids=OUTSIDE)
def test_nothing_is_said_of_rows_that_are_picked_outside(before: str) -> None:
    assert "_check(" not in mend(HEAD.format(before)).text


@pytest.mark.parametrize("before", ALONE.values(), ids=ALONE)
def test_it_is_said_where_the_arm_alone_picks(before: str) -> None:
    text = HEAD.format(before)
    mended = mend(text).text
    assert "torch._check(mask.nonzero().shape[0] > 0)" in mended
    x = torch.arange(12.0).reshape(4, 3)
    assert_equivalent(
        text, mended, [(x, torch.tensor(y)) for y in ([0, 1, 2, 0], [0, 0, 0, 0], [1, 2, 1, 2])]
    )
