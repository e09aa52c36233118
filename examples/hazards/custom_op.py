"""A custom operator without a fake kernel: tracing needs to know the shape of its result.

Both modes fail until the operator says, by `register_fake`, what it returns for tensors without values.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn


@torch.library.custom_op("exportlens_examples::median_filter", mutates_args=())
def median_filter(signal: torch.Tensor) -> torch.Tensor:
    """The running median of three samples, computed by NumPy outside of torch."""
    samples = signal.detach().numpy()
    padded = np.pad(samples, ((0, 0), (1, 1)), mode="edge")
    return torch.from_numpy(np.median(np.stack([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]]), axis=0))


class Denoiser(nn.Module):
    """Removes single outliers before a linear read-out."""

    def __init__(self) -> None:
        super().__init__()
        self.read_out = nn.Linear(32, 3)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return self.read_out(median_filter(signal))


if __name__ == "__main__":
    print(torch.export.export(Denoiser().eval(), (torch.randn(2, 32),)))
