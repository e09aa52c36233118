"""A tensor as a plain attribute: neither a parameter nor a buffer, so no part of the module's state.

torch.export takes it for a constant. It warns, exports, and loses the assignment: from the second call on,
the program differs from eager. `register_buffer` makes the tensor state, which `.to(device)` takes along.
"""

from __future__ import annotations

import torch
from torch import nn


class RunningCentre(nn.Module):
    """Subtracts a running mean of the inputs seen so far."""

    def __init__(self) -> None:
        super().__init__()
        self.centre = torch.zeros(8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.centre = 0.9 * self.centre + 0.1 * x.mean(dim=0)
        return self.head(x - self.centre)


if __name__ == "__main__":
    print(torch.export.export(RunningCentre().eval(), (torch.randn(2, 8),)))
