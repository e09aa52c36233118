"""A write through `.data`: behind the back of autograd, and of the tracer.

Strict mode exports a program that lacks the write, without a word: wrong numbers in production.
Non-strict mode fails.
"""

from __future__ import annotations

import torch
from torch import nn


class PaddingEraser(nn.Module):
    """Zeroes the padding token's embedding before pooling a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        words = self.embed(tokens)
        words.data[:, 0] = 0.0
        return self.head(words.mean(dim=1))


if __name__ == "__main__":
    print(torch.export.export(PaddingEraser().eval(), (torch.randint(0, 100, (2, 7)),)))
