"""Operators of objects: each was exported in strict mode by torch 2.13."""

from __future__ import annotations

import textwrap

_CLASS = """
import torch
from dataclasses import dataclass
from typing import NamedTuple
from torch import nn


class P:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return P(self.v + (other.v if isinstance(other, P) else other))

    __matmul__ = __radd__ = __rmatmul__ = __iadd__ = __add__

    def __neg__(self):
        return P(-self.v)

    __invert__ = __neg__


class Q(P):
    def __rmatmul__(self, other):
        return self


@dataclass
class D:
    v: torch.Tensor

    def __mul__(self, other):
        return D(self.v * other)


class N(NamedTuple):
    v: torch.Tensor

    def __mul__(self, other):
        return N(self.v)


class T:
    def __init__(self, v):
        self.v = v

    def __rmul__(self, other):
        return other

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return args[0]


class Layer(nn.Module):
    def __add__(self, other):
        return other

    __matmul__ = __add__


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = P(torch.ones(3))
        self.layer = Layer()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor):
        a, b = P(x), P(x + 1)
"""


def _model(body: str) -> str:
    return _CLASS + textwrap.indent(body, " " * 8) + "\n"


MUST = {
    "EXL343": [
        _model(body)
        for body in (
            "return (a @ b).v",
            "return (self.kept @ a).v",
            "return (a @ 2.0).v",
            "return (2.0 @ a).v",
            "return (a @ Q(x)).v",
            "return (~self.kept).v",
            "return (a + x).v",
            "return (x + a).v",
            "return (self.kept + self.w).v",
            "a += x\nreturn a.v",
            "a @= b\nreturn a.v",
            "x += a\nreturn x.v",
            "return (D(x) * x).v",
            "return self.layer + x",
            "return self.layer @ self.layer or x",
            "for _ in range(3):\n    a = a @ b\nreturn a.v",
        )
    ],
    "EXL601": [
        _model("for row in x:\n    a = a + P(row)\nreturn a, x"),
        _model("for row in x:\n    a = P(row)\nreturn {'last': [a]}"),
    ],
}
MUST_NOT = {
    "EXL343": [
        _model(body)
        for body in (
            "return (a + b).v + (-a).v",
            "return (a + 2.0).v + (2.0 + a).v + (self.kept + a).v",
            "return (D(x) * 2.0).v",
            "return (N(x) * x).v",
            "return x * T(x)",
            "return a.__matmul__(b).v + a.__radd__(x).v + a.__invert__().v",
            "a += b\nreturn a.v",
            "return self.layer.__add__(x)",
            "self.layer + self.layer\nreturn x",
            "return sum([a, b]).v",
        )
    ],
    "EXL601": [_model("for row in x:\n    a = a + P(row)\nreturn a.v, x")],
}
