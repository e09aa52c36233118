"""EXL1xx."""

from __future__ import annotations

MUST = {
    "EXL101": [
        # a buffer used as a flag
        """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if self.ready:
            return x + 1
        return x - 1
""",
        # elif behind a condition on configuration
        """
def forward(self, x: torch.Tensor, mode: str = "a"):
    if mode == "b":
        return x
    elif x.max() > 1:
        return x + 1
    return x - 1
""",
        # through a helper
        """
import torch
from torch import nn


def is_large(t):
    return t.abs().max() > 10


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.relu()
        if is_large(y):
            y = y / 10
        return y
""",
        # a size that depends on data
        """
def forward(self, x: torch.Tensor):
    kept = x[x > 0]
    if kept.numel() == 0:
        return x.sum()
    return kept.mean()
""",
        # break in a loop
        """
def forward(self, x: torch.Tensor):
    for _ in range(3):
        x = x * 2
        if x.norm() > 100:
            break
    return x
""",
        """
def forward(self, x: torch.Tensor):
    if torch.allclose(x, x.round()):
        return x.round()
    return x
""",
    ],
    "EXL102": [
        """
def forward(self, ids: torch.Tensor):
    if ids.max() >= 100:
        raise IndexError(f"index {ids.max()} is out of range")
    return ids + 1
""",
        """
def forward(self, x: torch.Tensor):
    if torch.isnan(x).any():
        raise ValueError("nan")
    else:
        y = x + 1
    return y
""",
    ],
    "EXL103": [
        """
def forward(self, x: torch.Tensor):
    steps = 0
    while steps < 5 and x.norm() > 1:
        x = x / 2
        steps += 1
    return x
""",
        """
def forward(self, x: torch.Tensor):
    while not (x.norm() < 1):
        x = x / 2
    return x
""",
    ],
    "EXL104": [
        """
def forward(self, probs: torch.Tensor):
    assert torch.all(probs >= 0)
    return probs.log()
""",
    ],
    "EXL105": [
        # in a function with a gradient of its own, whose inputs are told by what it does with them
        """
import torch
from torch import nn


class Crop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, images, places):
        size = images.size()[2]
        kept = []
        for i in range(images.size(0)):
            left = places[i][0]
            left = left if left > 0 else 0
            kept.append(images[i] * left)
        return torch.stack(kept)


class M(nn.Module):
    def forward(self, images, places):
        return Crop.apply(images, places)
""",
        """
def forward(self, x: torch.Tensor):
    scale = 1.0 if x.std() < 1e-3 else 1 / x.std()
    return x * scale
""",
    ],
    "EXL106": [
        """
def forward(self, x: torch.Tensor):
    flag = not x.any()
    return x, flag
""",
    ],
    "EXL112": [
        """
def forward(self, x: torch.Tensor, lengths: torch.Tensor):
    total = x.sum()
    for i in range(int(lengths.max())):
        total = total + i
    return total
""",
        # a tensor says how often a list is repeated
        """
def forward(self, x: torch.Tensor, group: torch.Tensor):
    sums = [0.0] * (group.max() + 1)
    return x + len(sums)
""",
    ],
    "EXL113": [
        """
def forward(self, x: torch.Tensor):
    n, width = x.shape
    total = x.sum(0)
    for row in x[x.sum(1) > 0]:
        total = total + row * width
    return total
""",
        """
def forward(self, labels: torch.Tensor):
    total = labels.sum()
    for label in torch.unique(labels):
        total = total + label
    return total
""",
        """
def forward(self, x: torch.Tensor):
    found = (x[:, 0] > 0).nonzero().squeeze()
    if found.dim() == 0:
        found = found.unsqueeze(0)
    total = x.sum()
    for row in found:
        total = total + x.index_select(0, row.reshape(1)).sum()
    return total
""",
        """
def forward(self, x: torch.Tensor):
    found = (torch.arange(4) < x.argmax()).nonzero().t().squeeze()
    return sum(row * 2 for row in found)
""",
        """
def forward(self, masks: torch.Tensor):
    starts = (masks[1:] == 0.0).any(dim=-1).nonzero().squeeze().cpu()
    if starts.dim() == 0:
        starts = [starts.item() + 1]
    else:
        starts = (starts + 1).tolist()
    return masks.sum() * len([0] + starts)
""",
    ],
}

# None of these carries an error of the rule: all export in both modes on torch 2.13.
MUST_NOT = {
    "EXL101": [
        """
def forward(self, x: torch.Tensor, mask: torch.Tensor = None):
    if mask is not None:
        x = x * mask
    return x
""",
        """
def forward(self, x: torch.Tensor):
    if x.dim() == 2 and x.shape[0] > 1 and x.is_floating_point():
        return x + 1
    return x
""",
        """
def forward(self, x: torch.Tensor):
    if self.training:
        if x.sum() > 0:
            return x
    return x + 1
""",
        """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self, use_bias=False):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(4)) if use_bias else None
        self.layers = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        if self.bias is not None:
            x = x + self.bias
        return x
""",
        """
def forward(self, x: torch.Tensor):
    if isinstance(x, torch.Tensor) and x.dtype == torch.float32:
        return x + 1
    return x
""",
        """
def forward(self, x: torch.Tensor):
    if torch.jit.is_scripting() or torch.onnx.is_in_onnx_export():
        if x.sum() > 0:
            return x
    return x + 1
""",
        # bounded by a check, as torch's documentation recommends
        """
def forward(self, x: torch.Tensor, n: torch.Tensor):
    size = n.item()
    torch._check(size >= 0)
    torch._check(size <= 5)
    if size < 6:
        return x.sin()
    return x.cos()
""",
    ],
    "EXL102": [
        """
def forward(self, x: torch.Tensor):
    if x.dim() != 2:
        raise ValueError(f"expected 2 dimensions, got {x.dim()}")
    return x + 1
""",
    ],
    "EXL103": [
        """
def forward(self, x: torch.Tensor):
    size = x.shape[-1]
    while size > 1:
        x = x[..., : size // 2]
        size = size // 2
    return x
""",
    ],
    "EXL104": [
        """
def forward(self, x: torch.Tensor):
    assert x.shape[1] == 4, "wrong size"
    assert x.sum().item() == x.sum().item()
    return x + 1
""",
    ],
    "EXL106": [
        """
def forward(self, x: torch.Tensor, scale: float = None):
    both = (x > 0) & ~(x > 1)
    scale = scale or 2.0
    return x * both * scale if not self.training else x
""",
    ],
    "EXL109": [
        """
def forward(self, x: torch.Tensor, flags: tuple = (True, False)):
    if any(flags) and all(size > 0 for size in x.shape):
        return x.any()
    return x.all()
""",
    ],
    "EXL111": [
        """
def forward(self, x: torch.Tensor):
    parts = {"b": x, "a": x + 1}
    return torch.stack([parts[name] for name in sorted(parts)])
""",
    ],
    "EXL112": [
        """
def forward(self, x: torch.Tensor):
    for i in range(x.shape[0]):
        x = x + i
    for i in range(len(x)):
        x = x + i
    return x
""",
    ],
    "EXL113": [
        # What is put into a tensor leaves its size, and what is made in a size has it.
        """
def forward(self, x: torch.Tensor):
    n, width = x.shape
    at = (x.sum(1) > 0).nonzero()[:, 0]
    sums = torch.zeros(n, width).index_add(0, at, x[at])
    return sum(row.sum() for row in sums) + sum(row.sum() for row in x[at].new_zeros(3, width))
""",
        """
def forward(self, x: torch.Tensor):
    return sum(row.sum() for row in x) + sum(part.sum() for part in x.unbind(1))
""",
        """
def forward(self, x: torch.Tensor):
    row = torch.nonzero(x > 0).t().squeeze()
    return sum(each.sum() for each in row)
""",
        """
def forward(self, ids: torch.Tensor):
    found = torch.nonzero(ids > 0)
    found = ids[:2] + found.shape[1]
    return ids.sum() * len((found + 1).tolist())
""",
    ],
}
