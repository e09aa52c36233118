"""Classes of outputs are registered by what their objects hold: both modes give back what eager gives."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from tests.rewriting.driving import copied, model, quietly, same
from tests.rewriting.fixing_all import mend

TEXT = """
from collections import OrderedDict
from dataclasses import dataclass, fields

import torch
from torch import nn


class Box:
    def __init__(self, corners):
        self.corners = corners.clamp(min=0)


@dataclass
class Found:
    box: Box
    score: torch.Tensor

    def __post_init__(self):
        self.score = self.score * 2


@dataclass
class Named:
    mean: torch.Tensor
    most: torch.Tensor


class Instances:
    def __init__(self, size, **given):
        self._size = size
        self._fields = {}
        for name, value in given.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            self._fields[name] = value

    def __getattr__(self, name):
        if name == "_fields" or name not in self._fields:
            raise AttributeError(name)
        return self._fields[name]


class Cropped(Instances):
    def crop(self, x):
        self.part = x[:1]
        return self


class Result(dict):
    pass


class Output(OrderedDict):
    def __post_init__(self):
        for each in fields(self):
            self[each.name] = getattr(self, each.name)


@dataclass
class Scores(Output):
    logits: torch.Tensor = None


class Layers(list):
    @property
    def last(self):
        return self[-1]


class Items(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__


class Pair:
    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first, self.second = first, second


class M(nn.Module):
    def forward(self, x):
        result = Result(total=x.sum())
        result.extra = x.mean()
        items = Items(first=x.sum())
        items.second = items.first + 1
        items.third = x if items.fourth is None else items.fourth
        layers = Layers([x])
        layers.append(layers.last + 1)
        return {
            "found": [Found(Box(x), x.sum(1))],
            "named": Named(x.mean(), x.max()),
            "instances": Instances((3, 4), boxes=x * 2),
            "cropped": Cropped((3, 4)).crop(x),
            "result": result,
            "scores": Scores(x + 1),
            "items": items,
            "layers": layers,
            "pair": Pair(x, x - 1),
        }
"""
OWN_DICT = """
import torch
from torch import nn


class Attributes(dict):
    def __init__(self, **given):
        super().__init__(**given)
        self.__dict__ = self


class M(nn.Module):
    def forward(self, x):
        out = Attributes(total=x.sum())
        out["mean"] = x.mean()
        return out
"""

AFTER_LOOP = """
import torch
from torch import nn


class Motion:
    def __init__(self, turn, shift):
        self.turn, self.shift = turn, shift

    def __matmul__(self, other):
        return Motion(self.turn @ other.turn, self.turn @ other.shift + self.shift)

    def inverse(self):
        return Motion(self.turn.T, -(self.turn.T @ self.shift))


class M(nn.Module):
    def forward(self, x):
        motion = Motion(torch.eye(4), torch.zeros(4))
        passed = []
        for row in x:
            motion = motion @ Motion(torch.eye(4), torch.tanh(row))
            passed.append(motion.shift)
        return [motion, motion.inverse().shift, torch.stack(passed)]
"""


def held(value: Any) -> Any:
    """What an object holds, in lists and dicts, with the name of its class."""
    if isinstance(value, torch.Tensor) or value is None:
        return value
    name = type(value).__name__
    inside = [list(value)] if isinstance(value, list) else [dict(value)] if isinstance(value, dict) else []
    if isinstance(value, (dict, list)) and type(value) in (dict, list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {str(key): held(item) for key, item in items}
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        inside.append({} if vars(value) is value else dict(vars(value)))
    elif hasattr(value, "__slots__"):
        inside.append({each: getattr(value, each) for each in value.__slots__})
    return {name: [held(each) for each in inside]} if inside else value


@pytest.mark.parametrize(
    "text", [TEXT, OWN_DICT, AFTER_LOOP], ids=["many classes", "own dict", "after a loop"]
)
def test_both_modes_give_the_objects_of_eager(text: str) -> None:
    mended = mend(text)
    assert not mended.refusals
    x = torch.tensor([[0.5, -1.0, 2.0, -0.1], [0.2, -0.3, -1.5, 0.7], [-1.1, 0.9, 0.4, -0.6]])
    with quietly():
        expected = held(copied(model(text)(x + 1)))
        assert same(held(model(mended.text)(x + 1)), expected)
        for strict in (True, False):
            program = torch.export.export(model(mended.text), (x,), strict=strict)
            assert same(held(program.module()(x + 1)), expected), strict


def test_a_dict_that_is_its_own_dict_loses_attributes_in_strict_mode() -> None:
    mended = mend(OWN_DICT.replace('out["mean"]', "out.mean"))
    assert "register_pytree_node" not in mended.text
    assert "set items instead" in " ".join(mended.refusals)


@pytest.mark.parametrize(
    ("held_too", "words"),
    [("x.device", "a device in `kept`"), ("x.dtype", "a dtype in `kept`")],
)
def test_what_no_program_returns_is_no_output(held_too: str, words: str) -> None:
    text = OWN_DICT[: OWN_DICT.index("class Attributes")] + (
        "class Kept:\n    def __init__(self, x):\n        self.x = x\n"
        f"        self.kept = {held_too}\n\n\n"
        "class M(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return Kept(x + 1)\n"
    )
    mended = mend(text)
    assert mended.text == text
    assert words in " ".join(mended.refusals)
