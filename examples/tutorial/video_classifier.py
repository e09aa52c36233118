"""Video classification: a model that exports, for one batch size only.

Without `dynamic_shapes` every size of the example inputs becomes a constant of the program. This call exports
batches of 2; the batch of 4 below then ends in "Guard failed: clips.size()[0] == 2".
"""

from __future__ import annotations

import torch
from torch import nn
from torchvision.models.video import mvit_v1_b


class VideoClassifier(nn.Module):
    """A multiscale vision transformer (MViT-B) with random weights, and a softmax over its 400 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = mvit_v1_b(weights=None)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return self.backbone(clips).softmax(dim=-1)


if __name__ == "__main__":
    # Two clips of 16 frames with 224 x 224 pixels.
    clips = torch.randn(2, 3, 16, 224, 224)
    program = torch.export.export(VideoClassifier().eval(), (clips,))
    print(program.module()(clips).shape)
    print(program.module()(torch.randn(4, 3, 16, 224, 224)).shape)
