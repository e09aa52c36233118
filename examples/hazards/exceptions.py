"""Python exceptions inside `forward`: no hazard while no tensor's data decides. Both modes trace them.

Strict tracing once did not follow `try`, and much advice still says so; torch 2.13 exports one that
is raised and caught while tracing.
"""

from __future__ import annotations

import torch
from torch import nn


class ForgivingHead(nn.Module):
    """Falls back to a pooled input when the image has an unexpected size."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3 * 8 * 8, 4)

    def require_size(self, image: torch.Tensor) -> torch.Tensor:
        if image.shape[-1] != 8:
            raise ValueError(f"images of 8 x 8 are expected, not of width {image.shape[-1]}")
        return image

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        try:
            image = self.require_size(image)
        except ValueError:
            image = nn.functional.adaptive_avg_pool2d(image, 8)
        return self.head(image.flatten(1))


if __name__ == "__main__":
    print(torch.export.export(ForgivingHead().eval(), (torch.randn(2, 3, 16, 16),)))
