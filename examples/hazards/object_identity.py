"""`id()` of a parameter: non-strict tracing puts other objects in the place of parameters.

Strict tracing exports it rightly. The default mode finds none of the recorded identities: the program penalises the
frozen backbone as well, and nobody is told.
"""

from __future__ import annotations

import torch
from torch import nn


class PenalisedHead(nn.Module):
    """Scores, and a penalty on the weights that are trained."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)
        self.frozen = {id(parameter) for parameter in self.backbone.parameters()}

    def forward(self, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        penalty = torch.zeros(())
        for parameter in self.parameters():
            if id(parameter) not in self.frozen:
                penalty = penalty + parameter.square().sum()
        return self.head(self.backbone(batch)), penalty


if __name__ == "__main__":
    print(torch.export.export(PenalisedHead().eval(), (torch.randn(2, 8),)))
