"""Image captioning: an in-place write to token ids that an object which is no tensor holds.

The captioner of BLIP overwrites the first token of what its tokenizer returned and `.to(device)` handed on. torch
before 2.6 fails there with "cannot mutate tensors with frozen storage"; later ones export it. Writing to a clone works everywhere:
`exportlens check --torch-version 2.5` reports the line.
"""

from __future__ import annotations

import torch
from torch import nn


class Encoding:
    """What a tokenizer returns: an object with token ids, not a tensor."""

    def __init__(self, input_ids: torch.Tensor) -> None:
        self.input_ids = input_ids

    def to(self, device: torch.device) -> Encoding:
        """The same token ids on another device."""
        return Encoding(self.input_ids.to(device))


class CharacterTokenizer:
    """One token per character, as many as the captioner looks at."""

    begin_token_id = 1
    length = 12

    def __call__(self, caption: str) -> Encoding:
        ids = [2 + ord(character) % 120 for character in caption.ljust(self.length)[: self.length]]
        return Encoding(torch.tensor([ids]))


class Captioner(nn.Module):
    """Scores a caption for an image: text attends to image patches."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = CharacterTokenizer()
        self.patches = nn.Conv2d(3, 32, kernel_size=8, stride=8)
        self.words = nn.Embedding(128, 32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = nn.Linear(32, 128)

    def forward(self, image: torch.Tensor, caption: str) -> torch.Tensor:
        patches = self.patches(image).flatten(2).transpose(1, 2)
        text = self.tokenizer(caption).to(image.device)
        text.input_ids[:, 0] = self.tokenizer.begin_token_id
        words = self.words(text.input_ids).expand(image.shape[0], -1, -1)
        attended, _ = self.attention(words, patches, patches)
        return self.head(attended)


if __name__ == "__main__":
    image = torch.randn(2, 3, 64, 64)
    print(torch.export.export(Captioner().eval(), (image, "a photo of a cat")))
