"""What a condition says of the rows that a mask picks is said in the arm of the mask itself only where nothing outside picks by
that mask, and of a copy elsewhere: torch asserts it of the whole program otherwise."""

from __future__ import annotations

import pytest
import torch

from tests.rewriting.driving import assert_equivalent, assert_programs_equal
from tests.rewriting.fixing_all import mend

HEAD = """import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def pick(self, x, mask):
        return x[mask].sum()

    def kept(self, y):
        return y

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
    "by the name that it had": "other = mask\n        mask = other\n        before = x[other].sum()",
    "by what shares its memory": "other = mask\n        mask = other.detach()\n        before = x[other].sum()",
    "by what holds it": "masks = [y > 0, y > 1]\n        mask = masks[0]\n        before = x[masks[0]].sum()",
    "by what a method gives": "mask = self.kept(y)\n        before = x[self.kept(y)].sum()",
    "by a function made before": "def pick():\n            return x[mask].sum()\n\n        before = pick()",
    "as it is, of the same type": "before = x[mask.bool()].sum()",
    "where it is given": "before = x.sum()\n        if mask is not None:\n            before = x[mask].sum()",
    "before it was converted": "before = x[mask].sum()\n        mask = mask.bool()",
    "changed in place": "mask[0] = False\n        before = x.sum()",
}
ALONE = {
    "counted": "before = mask.sum() + mask.float().mean()",
    "another tensor of it": "before = torch.where(~mask, y, 0).sum()",
    "asked twice": "before = x.sum()\n        if mask.any():\n            before = F.cross_entropy(x[mask], y[mask])",
}


PLACES = [
    (torch.arange(12.0).reshape(4, 3), torch.tensor(y)) for y in ([0, 1, 2, 0], [0, 0, 0, 0], [1, 2, 1, 2])
]


def test_of_rows_that_are_picked_outside_it_is_said_by_a_copy_of_the_mask() -> None:
    pairs = [(HEAD.format(before), mend(HEAD.format(before)).text) for before in OUTSIDE.values()]
    for (_, mended), name in zip(pairs, OUTSIDE, strict=True):
        assert "mask = mask.clone()\n            torch._check(mask.nonzero()" in mended, name
    assert_programs_equal(pairs, [PLACES for _ in pairs], modes=(True, False))


def test_what_was_picked_before_is_not_picked_from_a_copy() -> None:
    text = HEAD.format("there = y[mask]\n        before = there.sum()").replace("y[mask])", "there)")
    assert "mask.clone()" not in mend(text).text


@pytest.mark.parametrize("before", ALONE.values(), ids=ALONE)
def test_it_is_said_where_the_arm_alone_picks(before: str) -> None:
    text = HEAD.format(before)
    mended = mend(text).text
    assert "        torch._check(mask.nonzero().shape[0] > 0)" in mended
    assert "mask.clone()" not in mended
    assert_equivalent(text, mended, PLACES)


NOT_OF_THE_MASK = {
    "a count that may be given": """
        mask = y > 0
        if given is None:
            given = mask.sum()
        if given > 0:
            return F.cross_entropy(x[mask], y[mask])
        return x.sum() * 0
""",
    "a count of what the name was before": """
        count = given.sum()
        given = given & (y > 1)
        if count > 0:
            return F.cross_entropy(x[given], y[given])
        return x.sum() * 0
""",
}


@pytest.mark.parametrize("body", NOT_OF_THE_MASK.values(), ids=NOT_OF_THE_MASK)
def test_nothing_is_said_where_the_count_is_not_of_the_mask(body: str) -> None:
    assert "_check(" not in mend(HEAD.partition("        mask =")[0] + body.lstrip("\n")).text


def test_of_a_mask_that_the_condition_picks_by_it_is_said_by_a_copy() -> None:
    text = HEAD.format("before = x.sum()").replace("if mask.any()", "if x[mask].sum() > 0 and mask.any()")
    assert "mask = mask.clone()" in mend(text).text


def test_rows_that_get_the_name_of_their_mask() -> None:
    text = (
        HEAD.partition("        mask =")[0]
        + """
        masks = [part > 0 for part in y.split(2)]
        masks = torch.cat(masks).to(torch.uint8)
        masks = torch.nonzero(masks).squeeze(1)
        if len(masks) == 0:
            return x.sum() * 0
        return F.cross_entropy(x[masks], y[masks])
""".lstrip("\n")
    )
    mended = mend(text).text
    assert "torch._check(masks.nonzero().shape[0] > 0)" in mended
    x = torch.arange(12.0).reshape(4, 3)
    assert_equivalent(text, mended, [(x, torch.tensor(y)) for y in ([0, 1, 2, 0], [0, 0, 0, 0])])


INSIDE = """

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = M()

    def forward(self, x, y, mask):
        return self.inner(x, y, mask) + x[mask].sum()
"""


@pytest.mark.parametrize("rest", ["", INSIDE], ids=["alone", "in another model"])
def test_an_input_is_known_to_be_the_models_alone_where_no_other_has_it(rest: str) -> None:
    given = (
        HEAD.format("before = x.sum()")
        .replace("        mask = y > 0\n", "")
        .replace("y, given=None", "y, mask")
    )
    mended = mend(given + rest)
    assert "_check(" in mended.text
    assert ("mask = mask.clone()" in mended.text) == bool(rest)
