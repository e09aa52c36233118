"""Distributions that are made of others: the checks are switched off for all of them."""

from __future__ import annotations

import pytest
import torch

from tests.rewriting.driving import model
from tests.rewriting.fixing_all import mend

TEXT = """import torch
import torch.distributions as D
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return D.OneHotCategorical(logits=x).log_prob((x > 0).float())
"""
SWITCH = "torch.distributions.Distribution.set_default_validate_args(False)"


def test_the_checks_of_those_inside_are_switched_off() -> None:
    mended = mend(TEXT)
    assert mended.text == TEXT.replace("import nn\n", f"import nn\n\n{SWITCH}\n")
    x = torch.eye(3)
    try:
        for strict in (True, False):
            program = torch.export.export(model(mended.text), (x,), strict=strict)
            assert torch.equal(program.module()(x), model(mended.text)(x))
    finally:
        torch.distributions.Distribution.set_default_validate_args(True)


@pytest.mark.parametrize("made", ["OneHotCategorical(logits=x)", "Normal(x, 1.0)", "Normal(0.0, 1.0)"])
def test_where_they_are_off_nothing_is_found(made: str) -> None:
    text = TEXT.replace("import nn\n", f"import nn\n\nD.Distribution{SWITCH.partition('Distribution')[2]}\n")
    mended = mend(text.replace("OneHotCategorical(logits=x)", made))
    assert mended.rounds == 0
    assert not mended.refusals
