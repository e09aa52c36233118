"""An `if` on the value of a tensor: which branch runs depends on the data.

torch.export traces one pass with stand-in tensors that have no values, so it cannot choose a branch.
Both modes fail. `torch.cond` keeps both branches in the program.
"""

from __future__ import annotations

import torch
from torch import nn


class LoudnessGate(nn.Module):
    """Boosts quiet clips and compresses loud ones before classifying them."""

    def __init__(self) -> None:
        super().__init__()
        self.classify = nn.Linear(64, 5)

    def forward(self, clip: torch.Tensor) -> torch.Tensor:
        if clip.abs().mean() > 0.5:
            clip = torch.tanh(clip)
        else:
            clip = clip - clip.mean(dim=-1, keepdim=True)
            clip = clip * 2.0
        return self.classify(clip)


if __name__ == "__main__":
    print(torch.export.export(LoudnessGate().eval(), (torch.randn(2, 64),)))
