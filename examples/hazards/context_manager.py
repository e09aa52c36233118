"""A context manager of one's own: no hazard. Both modes trace it, and nothing is to report.

Strict tracing once knew torch's context managers only, and much advice still says so; torch 2.13 exports
this one.
"""

from __future__ import annotations

import torch
from torch import nn


class Profiled:
    """Counts how many blocks were entered."""

    def __init__(self) -> None:
        self.entered = 0

    def __enter__(self) -> Profiled:
        self.entered += 1
        return self

    def __exit__(self, *error: object) -> None:
        self.entered -= 1


class ProfiledBlock(nn.Module):
    """A residual block whose author wanted to know how often it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with Profiled():
            y = torch.relu(self.linear(x))
        return x + y


if __name__ == "__main__":
    print(torch.export.export(ProfiledBlock().eval(), (torch.randn(2, 16),)))
