"""What a base class, its helpers and its constructor hold, mended for the class that is exported."""

from __future__ import annotations

import textwrap

import torch

from tests.rewriting.driving import assert_programs_equal
from tests.rewriting.fixing_all import mend

HEAD = """import warnings

import numpy as np
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.margin = margin
        self.rows = self.calls = 0
        self.init_margin()

    def init_margin(self):
        self.margin = float(self.margin)

    def found(self, x):
        raise NotImplementedError

    def check(self, found):
        if len(found) == 2:
            self.rows = len(found[0])
            assert self.rows == len(found[1])
        else:
            assert len(found[0]) == len(found[1]) == len(found[2])

    def forward(self, x):
        found = self.found(torch.relu(x))
        self.check(found)
        return found


def curve(x, labels):
    recall = x / x[-1]
    if (labels == 0).all():  # nothing to recall
        warnings.warn("no positive label")
        recall = torch.ones_like(recall)
    return recall


class M(Base):
"""
# Of each: what stands in the class, what becomes of it, and of the head.
MENDED = {
    "lengths of found rows, asked for by the base class": (
        """
        def found(self, x):
            keep = torch.where(x.sum(-1) > 0.5)
            order = torch.arange(x.shape[0])[keep]
            return order, x[keep], order
        """,
        "assert found[0].shape[0] == found[1].shape[0] == found[2].shape[0]",
    ),
    "a number of NumPy's, made in another method": (
        """
        def init_margin(self):
            self.margin = np.radians(self.margin)

        def found(self, x):
            return x + self.margin, torch.where(x > np.deg2rad(20) - self.margin, x, x * self.margin)
        """,
        "self.margin = float(np.radians(self.margin))",
    ),
    "a number that may be None, or zero": (
        """
        def found(self, x):
            size = (x > 0).sum().item()
            made = torch.zeros((size or 0) + 1)
            return made, made
        """,
        "made = torch.zeros((size if size is not None else 0) + 1)",
    ),
    "a warning beside a choice, between writes of one object": (
        """
        def found(self, x):
            self.calls = 1
            made = curve(x[:, 0], x[:, 1])
            self.calls = 2
            return made * self.calls, made
        """,
        """
        if not torch.compiler.is_compiling() and (labels == 0).all():
            warnings.warn("no positive label")
        # nothing to recall
        recall = torch.where((labels == 0).all(), torch.ones_like(recall), recall)
        """,
    ),
}


def test_mended() -> None:
    pairs = []
    for body, expected in MENDED.values():
        text = HEAD + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
        mended = mend(text)
        assert textwrap.indent(textwrap.dedent(expected).strip(), "    ").strip() in mended.text
        pairs.append((text, mended.text))
    given = [(torch.rand(4, 3),), (torch.rand(4, 3) * torch.tensor([2.0, -1.0, 1.0]),)]
    assert_programs_equal(pairs, [given for _ in pairs], modes=(True, False))


CONTRACTED = """import opt_einsum as oe
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, y):
        return oe.contract("b i ..., o i -> b o ...", x, y, backend="torch")
"""


def test_a_contraction_of_opt_einsum_is_one_of_torch() -> None:
    assert 'return torch.einsum("b i ..., o i -> b o ...", x, y)' in mend(CONTRACTED).text
    for kept in ("out=y", "*x"):
        text = CONTRACTED.replace('backend="torch"', kept)
        assert ("oe.contract" in mend(text).text) is (kept == "out=y")
    mended = mend(CONTRACTED.replace('"b i ..., o i -> b o ..."', "self.equation"))
    assert any("not written in the call" in each for each in mended.refusals), mended.refusals
