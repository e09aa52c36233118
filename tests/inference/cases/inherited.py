"""Models whose hazard shows only through a base, a decorator, an enumeration or a required argument."""

from __future__ import annotations

from tests.inference.cases.case import X2, X4, Cases

CASES = Cases()

CASES(
    "loss-of-private-base",
    "(torch.randn(4, 6), torch.randint(0, 2, (4, 6)))",
    """
from torch.nn.modules.loss import _Loss


class M(_Loss):
    def __init__(self, reduction='mean'):
        super().__init__(reduction=reduction)

    def forward(self, pred, target):
        mask = target > 0
        if mask.sum() == 0:
            return pred.sum() * 0
        return F.mse_loss(pred * mask, target.float() * mask, reduction=self.reduction)
""",
)
CASES(
    "decorated-forward",
    "(torch.randn(4, 6), torch.tensor([4, 2, 3, 1]))",
    """
import functools


def checked(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    @checked
    def forward(self, x, lengths=None):
        if lengths is None:
            raise ValueError('lengths are needed')
        if lengths.max() > x.size(1):
            raise ValueError('too long')
        return self.fc(x)
""",
    "(6,)",
)
CASES(
    "enumeration-by-value",
    X2,
    """
from enum import Enum


class Reduction(Enum):
    MEAN = 'mean'
    SUM = 'sum'


class M(nn.Module):
    def __init__(self, reduction='mean'):
        super().__init__()
        self.reduction = Reduction(reduction)

    def forward(self, x):
        if self.reduction == Reduction.SUM and x.sum() > 0:
            return x.sum()
        if self.reduction.value == 'mean':
            return x.mean()
        raise ValueError(self.reduction)
""",
)
CASES(
    "flag-of-submodule",
    "(torch.randn(4, 6), True)",
    """
class Branch(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, inference):
        if not inference:
            return self.fc(x), x
        return self.fc(x), None


class M(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.branch = Branch(dim)

    def forward(self, x, inference):
        y, rest = self.branch(x, inference)
        return y
""",
    "(6,)",
)
CASES(
    "loop-over-nothing",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        for t in (x,) if not x.is_floating_point() else ():
            if len(torch.unique(t)) > 3:
                raise RuntimeError('too many values')
        return x * 2
""",
)
CASES(
    "byte-mask",
    X2,
    """
class M(nn.Module):
    def forward(self, x):
        mask = (x > 0).byte()
        return torch.where(mask, x, torch.zeros_like(x))
""",
)
CASES(
    "interface-behind-module",
    "(torch.randn(2, 4),)",
    """
from abc import ABCMeta, abstractmethod


class Scorer(object, metaclass=ABCMeta):
    @abstractmethod
    def __call__(self, x):
        raise NotImplementedError()


class M(nn.Module, Scorer):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        h = self.fc(x)
        if h.sum() > 0:
            return h
        return -h
""",
    "(4,)",
)
CASES(
    "weight-of-a-convolution-base",
    X4,
    """
from torch.nn.modules import conv
from torch.nn.modules.utils import _pair


def largest(weight, u):
    v = torch.matmul(u, weight.data)
    return torch.sum(v * v), torch.matmul(v, weight.data.t())


class M(conv._ConvNd):
    def __init__(self, inputs, outputs, size):
        size = _pair(size)
        super(M, self).__init__(
            inputs, outputs, size, _pair(1), _pair(0), _pair(1), False, _pair(0), 1, True, "zeros"
        )
        self.register_buffer("u", torch.ones(1, outputs))

    @property
    def scaled(self):
        sigma, u = largest(self.weight.view(self.weight.size(0), -1), self.u)
        self.u.copy_(u)
        return self.weight / sigma

    def forward(self, x):
        return F.conv2d(x, self.scaled, self.bias)
""",
    "(3, 4, 3)",
)
CASES(
    "decorated-call",
    "(torch.randn(4), torch.tensor([0, 1, 1, 2]))",
    """
import functools


def checked(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Base(nn.Module):
    @checked
    def __call__(self, x, index, size=None):
        if size is None:
            size = index.max().item() + 1
        return super().__call__(x, index, size)


class M(Base):
    def forward(self, x, index, size=None):
        return x.sum() * torch.bincount(index, minlength=size or 0)
""",
)
