"""What strict tracing loses behind an operator: no fix puts one between two writes to an object, where the second is read."""

from __future__ import annotations

import textwrap

import pytest
import torch
from torch import nn

from tests.rewriting.driving import assert_equivalent, quietly
from tests.rewriting.fixing_all import mend

HEAD = """import torch
from torch import nn


class Held:
    a = b = 0

    def total(self):
        return self.a + self.b


class Made:
    def __init__(self, a):
        self.a = a


def total(held):
    return held.a + held.b


class Inner(nn.Module):
    def forward(self, x):
        {inner}


class M(nn.Module):
"""
LOSES = "strict tracing loses what is written to `{}`"
INPUTS = [(torch.tensor([2.0, 0.5, -3.0]),), (torch.tensor([0.2, 0.5, -0.1]),)]


def program(methods: str, inner: str = "return x") -> str:
    text = (
        HEAD.format(inner=inner)
        + """
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.held = Held()
        self.register_buffer("best", torch.zeros(3))
"""
    )
    return text + "\n" + textwrap.indent(textwrap.dedent(methods), "    ")


def forward(body: str) -> str:
    return program("def forward(self, x):\n" + textwrap.indent(body, "    "))


CHANGED = "if (x > 1).any():\n    x = x.cumsum(0)\n"
# Both sides of this one may be computed, and one selected.
SELECTED = "if (x > 1).any():\n    x = x.clamp(-1, 1)\n"

REFUSED = {
    "read by a method in between": (
        program("""
            def centred(self, x):
                return x - self.first

            def forward(self, x):
                self.first = x.mean()
                x = self.centred(x)
                if (x > 1).any():
                    x = x.cumsum(0)
                self.second = x
                return self.second + self.first
        """),
        "second",
    ),
    "read by a function made in between": (
        forward(f"self.n = x\nget = lambda: self.n\n{CHANGED}self.n = x * 2\nreturn self.n + get()\n"),
        "n",
    ),
    "handed on in between": (
        forward(f"self.a = self.b = x\nx = total(self)\n{CHANGED}self.b = x * 2\nreturn self.b\n"),
        "b",
    ),
    "written in a loop before": (
        forward(f"for i in range(2):\n    self.a = x * i\n{CHANGED}self.b = x * 2\nreturn self.b\n"),
        "b",
    ),
    "left in between": (
        forward(f"self.a = x * 2\nif x.dim() > 3:\n    return x\n{CHANGED}self.b = x * 2\nreturn self.b\n"),
        "b",
    ),
    "what the branch sets": (
        forward(
            "self.step = x * 2\nif (x > 1).any():\n    self.step = self.step.cumsum(0)\nreturn x + self.step\n"
        ),
        "step",
    ),
    "the rounds of a loop": (
        forward(
            "for i in range(3):\n    if (x > 1).any():\n        x = x.cumsum(0)\n    self.step = x * i\n    x = x + self.step\nreturn x\n"
        ),
        "step",
    ),
    "an object of its own": (
        forward(f"o = Held()\no.a = x * 2\n{CHANGED}o.a = x * 3\nreturn o.a + x\n"),
        "a",
    ),
    "an object of the model": (
        forward(f"self.held.a = x * 2\n{CHANGED}self.held.b = x * 3\nreturn self.held.b + x\n"),
        "b",
    ),
    "an object that is handed on": (
        forward(f"o = Held()\no.a = x * 2\n{CHANGED}o.b = x * 3\nreturn total(o)\n"),
        "b",
    ),
    "an object whose method reads it": (
        forward(f"o = Held()\no.a = x * 2\n{CHANGED}o.a = x * 3\nreturn o.total()\n"),
        "a",
    ),
    "the method called again": (
        program("""
            def turned(self, x):
                self.scale = x.mean()
                if (x > 1).any():
                    x = x.cumsum(0)
                return x * self.scale

            def forward(self, x):
                return self.turned(self.turned(x))
            """),
        "scale",
    ),
    "in a method that is called": (
        program("""
            def decide(self, x):
                if (x > 1).any():
                    return x.cumsum(0)
                return x * 2

            def forward(self, x):
                self.first = x
                self.second = self.decide(x)
                return self.second + 1
        """),
        "second",
    ),
    "in a submodule that is called": (
        program(
            "def forward(self, x):\n    self.state = x\n    y = self.inner(x)\n    self.state = y * 2\n    return self.state\n",
            "return x.cumsum(0) if (x > 1).any() else x",
        ),
        "state",
    ),
    "what a constructor has written, in a method": (
        program("""
            def turn(self, o: Made, x):
                if (x > 1).any():
                    o.a = o.a.cumsum(0)

            def forward(self, x):
                o = Made(x)
                self.turn(o, x)
                return o.a + x
        """),
        "a",
    ),
    "what a constructor has written, in a submodule": (
        program(
            "def forward(self, x):\n    o = Made(x)\n    self.inner(o)\n    return o.a + x\n",
            "if (x.a > 1).any():\n            x.a = x.a.cumsum(0)\n        return x",
        ),
        "a",
    ),
}

MENDED = {
    "another attribute": forward(
        f"self.first = x\n{CHANGED}self.second = x\nreturn self.second + self.first\n"
    ),
    "a number": forward(f"self.n = 1\nx = x + self.n\n{CHANGED}self.n = 5\nreturn x * self.n\n"),
    "setattr": forward(
        f"setattr(self, 'n', x * 2)\n{CHANGED}setattr(self, 'm', x)\nreturn self.m + self.n\n"
    ),
    "what a constructor has written": forward(
        "o = Made(x)\nif (x > 1).any():\n    o.a = o.a.cumsum(0)\nreturn o.a + x\n"
    ),
    "written once": forward(f"{CHANGED}self.seen = x\nreturn self.seen + 1\n"),
    "the second write is not read": forward(
        f"self.a = x.mean()\n{CHANGED}self.b = x.mean()\nreturn x * self.a\n"
    ),
    "one chain": forward(
        "if (x > 1).any():\n    self.a = x * 2\nelif (x < -1).any():\n    self.a = x * 3\nelse:\n    self.a = x * 4\nreturn self.a\n"
    ),
    "in training only": forward(f"if self.training:\n    self.n = 1\n{CHANGED}self.a = x\nreturn self.a\n"),
    "another way through": forward(
        f"if x.dim() > 3:\n    self.a = x\n    return self.a\n{CHANGED}self.b = x\nreturn self.b\n"
    ),
    "a buffer": forward(f"self.best = x.clamp(0, 1)\n{CHANGED}self.best = x * 3\nreturn self.best + x\n"),
    "an object that is made anew": forward(
        f"o = Held()\no.a = x * 2\n{CHANGED}o = Held()\no.a = x * 3\nreturn o.a + x\n"
    ),
    "another object": program(
        "def forward(self, x):\n    self.state = x\n    x = self.inner(x)\n    return x + self.state\n",
        "self.seen = x.cumsum(0) if (x > 1).any() else x\n        return self.seen * 2",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_no_operator_between_two_writes(name: str) -> None:
    text, attribute = REFUSED[name]
    mended = mend(text)
    assert mended.text == text
    assert [reason.startswith(LOSES.format(attribute)) for reason in mended.refusals] == [True]


@pytest.mark.parametrize("name", MENDED)
def test_what_is_not_lost_is_mended(name: str) -> None:
    mended = mend(MENDED[name])
    assert not mended.refusals
    assert "torch.cond" in mended.text
    assert_equivalent(MENDED[name], mended.text, INPUTS)


def test_a_selection_takes_the_place_of_an_operator() -> None:
    text = forward(f"self.scale = x.mean()\n{SELECTED}self.scale = x.mean()\nreturn x * self.scale\n")
    mended = mend(text)
    assert not mended.refusals
    assert "torch.where" in mended.text and "torch.cond" not in mended.text
    assert_equivalent(text, mended.text, INPUTS)


class _Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.scale = x * 2
        y = torch.cond((x > 1).any(), lambda x: x.cumsum(0), lambda x: x.clone(), (x,))
        self.scale = y * 3
        return x + self.scale


class _Held:
    def __init__(self, a: torch.Tensor) -> None:
        self.a = a


class _Made(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        held = _Held(x)
        held.a = torch.cond((x > 1).any(), lambda x: x.cumsum(0), lambda x: x.clone(), (x,))
        return x + held.a


@pytest.mark.parametrize("strict", [True, False])
def test_torch_loses_what_is_written_to_an_object_that_was_made(strict: bool) -> None:
    (x,) = INPUTS[0]
    with quietly():
        program = torch.export.export(_Made(), (x,), strict=strict).module()
    assert torch.equal(program(x), _Made()(x)) is not strict


@pytest.mark.parametrize("strict", [True, False])
def test_torch_loses_the_second_write_in_strict_mode(strict: bool) -> None:
    (x,) = INPUTS[0]
    with quietly():
        program = torch.export.export(_Twice(), (x,), strict=strict).module()
    assert torch.equal(program(x), _Twice()(x)) is not strict
