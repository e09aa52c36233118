"""Models that their own file makes with other arguments than the defaults: what those switch on is judged, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from exportlens.config import Config
from exportlens.engine import Engine

MODEL = """import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, width, kind="mean", top=None, *, strict=False):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.kind, self.top, self.strict = kind, top, strict

    def forward(self, x):
        x = self.layer(x)
        if self.kind == "data":
            x = x.data * 2
        if self.top is not None:
            x = x[x > self.top].data
        if self.strict and x.sum() > 0:
            x = x + 1
        return x


"""


def _lines(tmp_path: Path, text: str) -> list[int]:
    path = tmp_path / "model.py"
    engine = Engine(Config(root=tmp_path))
    engine.update(path, text)
    found = engine.check(path)
    assert not any("Reached only" in note for each in found for note in each.notes)
    return sorted({each.range.start.line + 1 for each in found})


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        ("", []),
        ('model = Pool(4, "data")\n', [14]),
        ("def make():\n    return Pool(width=4, kind='data').eval()\n", [14]),
        ("if __name__ == '__main__':\n    width = 8\n    print(Pool(width, top=2))\n", [16]),
        ("KIND = 'data'\n\n\ndef build():\n    return nn.Sequential(Pool(3, KIND), Pool(3, strict=True))\n", [14, 17]),
        ("model = Pool(4, 'mean', None)\nother = Pool(8)\n", []),
        # What is not known here, or says nothing, leaves the defaults.
        ("def make(kind):\n    return Pool(4, kind)\n", []),
        ("def make(*args):\n    return Pool(*args)\n", []),
        ("def make(options):\n    return Pool(4, **options)\n", []),
        ("def make():\n    kind = input()\n    return Pool(4, kind)\n", []),
        ("model = Pool(4, 'data', missing=1)\n", []),
    ],
)  # fmt: skip
def test_what_arguments_switch_on(tmp_path: Path, made: str, lines: list[int]) -> None:
    assert _lines(tmp_path, MODEL + made) == lines


def test_what_a_handed_object_does(tmp_path: Path) -> None:
    text = """import torch
from torch import nn


class Inner(nn.Module):
    def halve(self, x):
        return x / 2 if x.sum() > 0 else x


class Outer(nn.Module):
    def __init__(self, inner, times):
        super().__init__()
        self.inner, self.times = inner, times

    def forward(self, x):
        for _ in range(self.times):
            x = self.inner.halve(x)
        return x


def make():
    return Outer(Inner(), 2)
"""
    assert _lines(tmp_path, text) == [7]


STACK = """import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, h):
        return self.layer(h)

    def step(self, h):
        h = self.layer(h)
        return h - 1 if h.mean() > 0 else h


class Stack(nn.Module):
    def __init__(self, parts, *others):
        super().__init__()
        self.parts, self.others = parts, nn.ModuleList(others)

    def forward(self, h):
        for part in self.parts:
            h = part.step(h)
        for other in self.others:
            h = other(h)
        return h


def inputs():
    return (torch.randn(2, 4),)


"""


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        ("", []),
        ("def make():\n    return Stack(nn.ModuleList([Gate(4) for _ in range(2)]))\n", [15]),
        ("def build(width):\n    gates = []\n    for _ in range(2):\n        gates.append(Gate(width))\n    return Stack(nn.ModuleList(gates))\n", [15]),
        ("def build(width):\n    gates = [Gate(width)]\n    if width > 4:\n        return Stack(nn.ModuleList(gates), Gate(width))\n", [15]),
        ("def build(gates):\n    return Stack(gates)\n", []),
        ("def build():\n    other = Gate(4)\n    return Stack(other.children()), Gate(2)\n", []),
    ],
)  # fmt: skip
def test_what_handed_parts_do(tmp_path: Path, made: str, lines: list[int]) -> None:
    assert _lines(tmp_path, STACK + made) == lines


def test_handed_classes_and_arguments_without_a_name(tmp_path: Path) -> None:
    text = STACK.replace("nn.ModuleList(others)", "nn.ModuleList(other(4) for other in others)").replace(
        "other(h)", "other.step(h)"
    )
    assert _lines(tmp_path, text + "def make():\n    return Stack([], *[Gate, Gate])\n") == [15]
    assert _lines(tmp_path, text + "def make(more):\n    return Stack([], *more)\n") == []


def test_an_edit_of_what_is_handed_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    engine = Engine(Config(root=tmp_path))
    for made, count in (("nn.ModuleList()", 0), ("nn.ModuleList([Gate(4)])", 1), ("nn.ModuleList()", 0)):
        engine.update(path, STACK + f"def make():\n    parts = {made}\n    return Stack(parts)\n")
        assert len(engine.check(path)) == count


def test_an_edit_of_the_construction_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    engine = Engine(Config(root=tmp_path))
    for kind, count in (("mean", 0), ("data", 1), ("mean", 0)):
        engine.update(path, MODEL + f"def make():\n    return Pool(4, '{kind}')\n")
        assert len(engine.check(path)) == count


HANDED = """import torch
from torch import nn


class Base(nn.Module):
    def forward(self, *inputs, **options):
        return self.compute(*inputs, **options)


class Limited(Base):
    def compute(self, x, limit=2.0):
        if x.sum() > limit:
            x = x * 2
        return x


class Alone(nn.Module):
    def forward(self, *inputs):
        if inputs[0].sum() > 0:
            return inputs[0] + 1
        return inputs[1]


"""


def test_inputs_that_are_handed_on(tmp_path: Path) -> None:
    assert _lines(tmp_path, HANDED) == [12]
    given = "if __name__ == '__main__':\n    Alone()(torch.ones(3), torch.ones(3))\n"
    assert _lines(tmp_path, HANDED + given) == [12, 19]
