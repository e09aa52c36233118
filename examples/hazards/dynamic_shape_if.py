"""An `if` on the size of a dimension that is meant to be dynamic.

With a fixed size the branch is chosen once and for all, and nothing is wrong. With a dynamic batch the one
branch that was traced holds for a part of the sizes only: "Constraints violated".
"""

from __future__ import annotations

import torch
from torch import nn


class ChunkedEncoder(nn.Module):
    """Centres large batches; small ones are too small for a mean that means something."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(8, 4)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        if batch.shape[0] > 16:
            batch = batch - batch.mean(dim=0, keepdim=True)
        return self.encode(batch)


if __name__ == "__main__":
    size = torch.export.Dim("size", min=2, max=64)
    example = (torch.randn(4, 8),)
    print(torch.export.export(ChunkedEncoder().eval(), example, dynamic_shapes={"batch": {0: size}}))
