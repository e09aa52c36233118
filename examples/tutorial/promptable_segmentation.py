"""Promptable segmentation: what is exported is a method of a class that is no nn.Module.

Predictors like SAM 2's wrap a model in a plain class with the pre- and post-processing. torch.export takes
Modules only: "Expected `mod` to be an instance of `torch.nn.Module`". A wrapper Module that holds the model,
and calls the method in its `forward`, can be exported, and the parameters of the model are the program's.
"""

from __future__ import annotations

import torch
from torch import nn


class MaskModel(nn.Module):
    """An image encoder, a prompt encoder for points, and a mask decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.image_encoder = nn.Sequential(
            nn.Conv2d(3, 16, kernel_size=4, stride=4), nn.GELU(), nn.Conv2d(16, 32, kernel_size=3, padding=1)
        )
        self.prompt_encoder = nn.Linear(2, 32)
        self.upscale = nn.ConvTranspose2d(32, 8, kernel_size=4, stride=4)
        self.to_kernel = nn.Linear(32, 8)

    def forward(self, image: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        features = self.image_encoder(image)
        prompt = self.prompt_encoder(points).mean(dim=1)
        pixels = self.upscale(features + prompt[:, :, None, None])
        return torch.einsum("bchw,bc->bhw", pixels, self.to_kernel(prompt))


class ImagePredictor:
    """The convenient interface: pixel values and pixel coordinates in, a mask out."""

    def __init__(self, model: MaskModel, threshold: float = 0.0) -> None:
        self.model = model
        self.threshold = threshold

    def predict(self, image: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        scaled = image / 255.0 - 0.5
        relative = points / image.shape[-1]
        return self.model(scaled, relative) > self.threshold


predictor = ImagePredictor(MaskModel().eval())

if __name__ == "__main__":
    image = torch.rand(2, 3, 64, 64) * 255.0
    points = torch.tensor([[[20.0, 31.0], [40.0, 12.0]], [[3.0, 60.0], [33.0, 30.0]]])
    print(torch.export.export(predictor.predict, (image, points)))
