"""Dynamic dimensions that the code ties together: torch.export finds out, and suggests fixes.

`query` and `key` are declared with lengths of their own, but adding them makes the lengths equal:
"Constraints violated (key_length)!", with "Suggested fixes" below.
"""

from __future__ import annotations

import torch
from torch import nn


class PairScorer(nn.Module):
    """Scores how well two sequences of the same length match, position by position."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(16, 1)

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return self.score(torch.tanh(query + key)).mean(dim=1)


if __name__ == "__main__":
    query_length = torch.export.Dim("query_length", min=2, max=128)
    key_length = torch.export.Dim("key_length", min=2, max=128)
    program = torch.export.export(
        PairScorer().eval(),
        (torch.randn(2, 10, 16), torch.randn(2, 10, 16)),
        dynamic_shapes={"query": {1: query_length}, "key": {1: key_length}},
    )
    print(program)
