"""Lists of which only the last items are read become windows; others say that they have no bound."""

from __future__ import annotations

import pytest

from tests.rewriting.fixing_all import mend

_TEXT = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self, span=4):
        super().__init__()
        self.span = span
        self.levels = []

    def forward(self, x: torch.Tensor):
        self.levels.append(x.mean())
        {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "return x / torch.stack(self.levels[-self.span :]).mean()",
        "return x / torch.stack(self.levels[-3:]).mean() + self.levels[-1]",
        "return x if len(self.levels) < 3 else x / torch.stack(self.levels[-3:]).mean()",
    ],
)
def test_bounded_by_its_reads(line: str) -> None:
    mended = mend(_TEXT.format(line=line))
    assert 'self.register_buffer("levels", ' in mended.text
    assert not mended.refusals


@pytest.mark.parametrize(
    "line",
    [
        "return x / torch.stack(self.levels[-2:]).mean() * len(self.levels)",
        "return x / torch.stack(self.levels[-2:]).mean() * torch.stack(self.levels[-3:]).mean()",
        "return x / torch.stack(self.levels[-2:]).mean() * torch.stack(self.levels).mean()",
        "return x / torch.stack(self.levels[2:]).mean()",
        "return x if len(self.levels) < 4 else x / torch.stack(self.levels[-3:]).mean()",
        "return x if len(self.levels) == 3 else x / torch.stack(self.levels[-3:]).mean()",
    ],
)
def test_more_of_it_is_read(line: str) -> None:
    mended = mend(_TEXT.format(line=line))
    assert "register_buffer" not in mended.text
    assert any("how many of them are kept" in each for each in mended.refusals)
