"""`id()` of a tensor: the number belongs to one run of one process.

Both modes freeze the number that they saw while tracing: the program exports, and adds a constant that eager
code never adds again.
"""

from __future__ import annotations

import torch
from torch import nn


class JitteredHead(nn.Module):
    """Adds a jitter that its author wanted to differ from batch to batch."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 8)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        jitter = id(batch) % 7
        return self.head(batch) + jitter


if __name__ == "__main__":
    print(torch.export.export(JitteredHead().eval(), (torch.randn(2, 8),)))
