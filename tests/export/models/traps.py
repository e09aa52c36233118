"""Models that export and are wrong, or that fail with no line in torch's message."""

from __future__ import annotations

import random
import time

import torch
from torch import nn


class FrozenNumber(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        return y * random.random()


class FrozenClock(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + time.time() % 1


class FrozenCounter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


class PlainTensor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.zeros(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = 0.5 * self.mean + x.mean(0)
        return x - self.mean


class Holder:
    def __init__(self) -> None:
        self.kept = torch.zeros(4)


class HeldByAnObject(nn.Module):
    """A running sum in an object that is no Module."""

    def __init__(self) -> None:
        super().__init__()
        self.holder = Holder()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.holder.kept = self.holder.kept + x.sum(0)
        return x + self.holder.kept


class HeldInAList(nn.Module):
    """A running sum in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = [torch.zeros(4)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept[0] = self.kept[0] + x.sum(0)
        return x + self.kept[0]


class Counts(nn.Module):
    """A registered buffer: the export keeps its updates, some targets do not."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(1)
        return x + self.seen


class DataWrite(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        y.data.mul_(2)
        return y + 1


class DataDependent(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if y.sum() > 0:
            return y
        return -y


class ShapeBranch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        if y.shape[0] > 16:
            y = y * 2
        return y


class Dynamic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class EagerFails(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(7, 7)


class Dropout(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rand_like(x)


class TwoProblems(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.sum().item()
        if n > 1:
            x = x + 1
        if n > 2:
            x = x + 2
        return x


class Convolves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x)).mean((2, 3))


class Factorises(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return torch.linalg.qr(y)[0]


class Steps(nn.Module):
    """An operator that some targets know by its parts alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.diff(x, dim=-1, prepend=x[:, :1])


class Sorts(nn.Module):
    """An operator that is a part of the user's, and that XNNPACK's runtime has no kernel for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y.argsort(dim=-1)


class Reads(nn.Module):
    """Words with positions for 24 of them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.positions = nn.Parameter(torch.zeros(1, 24, 8))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.words(ids) + self.positions[:, : ids.shape[1]]


class Names(Reads):
    """Outputs by name, not in the order of the alphabet."""

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:  # type: ignore[override]
        found = super().forward(ids)
        return {"words": found, "means": found.mean(-1)}


class Described(nn.Module):
    """Takes what is no tensor, and makes a tensor from a list."""

    def forward(self, x: torch.Tensor, how: str, times: int) -> torch.Tensor:
        weights = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
        weights[:, 0] = 0.5
        y = (x * weights) * times
        return y.sum(1) if how == "sum" else y


class AssignsBuffer(nn.Module):
    """A buffer that is bound anew: strict export drops the update."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = self.seen + 1
        return x * 2


class RemembersFirst(nn.Module):
    """Keeps what tracing made: a FakeTensor, were it not for the copy, and a program that computes it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: dict[str, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if "mean" not in self.cache:
            self.cache["mean"] = x.mean(0)
        return x + self.cache["mean"]


class Says(nn.Module):
    """Returns more than tensors."""

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        return {"y": x + 1, "name": "plus", "left": None, "rows": 3}


class Tells(nn.Module):
    """Returns a number and None, and no string."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None, int]:
        return x + 1, None, 3
