"""Fixes of remarks that would leave an error behind are taken back."""

from __future__ import annotations

from pathlib import Path

from exportlens.checking import check_files, fix_files

COUNTED = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0
        self.note = "none"

    def forward(self, x: torch.Tensor):
        self.steps += 1
        if self.steps > 3:
            {arm}
        return x * self.steps
"""


def _fixed(path: Path, text: str) -> str:
    path.write_text(text)
    checked = check_files([path], {"mode": "both"})
    fix_files(checked, {"mode": "both"}, unsafe=True)
    return checked.changed.get(path, text)


def test_a_counter_stays_a_number_where_a_branch_on_it_has_no_rewrite(tmp_path: Path) -> None:
    text = COUNTED.format(arm="del self.note")
    assert _fixed(tmp_path / "model.py", text) == text


def test_a_counter_becomes_a_buffer_where_it_has_one(tmp_path: Path) -> None:
    fixed = _fixed(tmp_path / "model.py", COUNTED.format(arm="x = x + 1"))
    assert 'self.register_buffer("steps", torch.tensor(0), persistent=False)' in fixed
    assert "torch.cond(self.steps > 3" in fixed


def test_a_flag_becomes_a_buffer_once_the_state_beside_it_is_one(tmp_path: Path) -> None:
    """In the first round the branch on the flag has no rewrite: what it binds is no buffer yet."""
    text = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(3)
        self.scale = torch.ones(3)
        self.first = True

    def forward(self, x: torch.Tensor):
        mean, scale = x.mean(0).detach(), x.std(0).detach()
        if self.first:
            self.mean, self.scale = mean, scale
            self.first = False
        else:
            self.mean = 0.9 * self.mean + 0.1 * mean
            self.scale = 0.9 * self.scale + 0.1 * scale
        return (x - self.mean) / self.scale
"""
    fixed = _fixed(tmp_path / "model.py", text)
    assert "torch.cond(self.first" in fixed
    assert 'self.register_buffer("first", torch.tensor(True), persistent=False)' in fixed
