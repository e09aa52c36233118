"""Parameters that are no tensors, as annotations and uses tell."""

from __future__ import annotations

from tests.inference.cases.case import Cases

CASES = Cases()

CASES(
    "dict-by-an-alias",
    "({'x': torch.randn(4, 6), 'batch': torch.randn(4, 6)},)",
    """
from typing import Dict

Batch = Dict[str, torch.Tensor]


class M(nn.Module):
    def __init__(self, field):
        super().__init__()
        self.field = field
        self.fc = nn.Linear(6, 6)

    def forward(self, data: Batch):
        y = self.fc(data[self.field])
        if self.field + "_extra" not in data and "batch" in data:
            y = y + data["batch"]
        return y
""",
    "('x',)",
)
CASES(
    "dict-by-use",
    "({'x': torch.randn(4, 6), 'edges': torch.randn(4, 6)},)",
    """
EDGES = "edges"


class M(nn.Module):
    def __init__(self, field):
        super().__init__()
        self.field = field

    def forward(self, data):
        y = data[self.field]
        if EDGES in data:
            y = y * data[EDGES]
        return y.sum(-1)
""",
    "('x',)",
)
CASES(
    "dict-by-an-alias-failing",
    "({'x': torch.rand(4, 6)},)",
    """
from typing import Dict

Batch = Dict[str, torch.Tensor]


class M(nn.Module):
    def forward(self, data: Batch):
        if data["x"].min() < 0:
            raise ValueError("negative")
        return data["x"].sqrt()
""",
)
CASES(
    "sizes-of-levels",
    "(torch.randn(2, 20, 4), [(2, 2), (4, 4)])",
    """
class M(nn.Module):
    def forward(self, value, shapes: list):
        assert sum(s[0] * s[1] for s in shapes) == value.shape[1]
        parts = value.split([s[0] * s[1] for s in shapes], dim=1)
        return torch.stack([part.mean(1) for part in parts], 1)
""",
)
CASES(
    "sizes-of-levels-not-annotated",
    "(torch.randn(2, 20, 4), [(2, 2), (4, 4)])",
    """
class M(nn.Module):
    def forward(self, value, shapes):
        if sum(s[0] * s[1] for s in shapes) != value.shape[1]:
            raise ValueError("shapes do not cover the values")
        return value.sum(1)
""",
)
