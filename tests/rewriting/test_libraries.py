"""Operators of the old recipe become custom operators, which export and give what they gave; or are refused."""

from __future__ import annotations

import pytest
import torch

from tests.rewriting.driving import assert_equivalent
from tests.rewriting.fixing_all import mend

MODEL = """

class M(nn.Module):
    def forward(self, x):
        return torch.ops.{space}.triple(x, 3.0) + 1
"""
DECORATED = """import torch
from torch import nn

library = torch.library.Library("{space}", "DEF")
library.define("triple(Tensor x, float k=2.0) -> Tensor")


@torch.library.impl(library, "triple", "CPU")
def triple(x, k=2.0):
    # three times
    return x * 3 * k
"""
AFTER = (
    """import torch
from torch import nn


@torch.library.custom_op("{space}::triple", mutates_args=(), device_types="cpu", """
    """schema="(Tensor x, float k=2.0) -> Tensor")
def triple(x, k=2.0):
    # three times
    return x * 3 * k


@triple.register_fake
def _(x, k=2.0):
    # The same as the operator: without data, its shapes and dtypes come of it.
    # three times
    return x * 3 * k
"""
)
CALLED = """import torch
from torch import nn
from torch.library import Library


def triple(x, k=2.0):
    return x * 3 * k


lib = Library("{space}", "DEF")
lib.define("triple(Tensor x, float k=2.0) -> Tensor")
lib.impl("triple", triple, "CPU")
"""
FUNCTIONS = """import torch
from torch import nn

torch.library.define("{space}::triple", "(Tensor x, float k=2.0) -> Tensor")


@torch.library.impl("{space}::triple", "default")
def triple(x, k=2.0):
    return x * 3 * k
"""
MENDED = {"decorated": DECORATED, "called": CALLED, "functions": FUNCTIONS}


@pytest.mark.parametrize("name", MENDED)
def test_mended_and_equal(name: str) -> None:
    # An operator is defined once per process: the two texts have namespaces of their own.
    before, mine = ((MENDED[name] + MODEL).replace("{space}", f"legacy_{name}_{end}") for end in ("a", "b"))
    mended = mend(mine)
    assert not mended.refusals
    assert "library.define" not in mended.text
    if name == "decorated":
        assert mended.text == (AFTER + MODEL).replace("{space}", "legacy_decorated_b")
    x = torch.randn(3)
    assert_equivalent(before, mended.text, [(x,), (-x,)])


REFUSED = {
    "several kernels": (
        DECORATED
        + '\n\n@torch.library.impl(library, "triple", "CUDA")\ndef other(x, k=2.0):\n    return x * 3 * k\n',
        "has 2 kernels",
    ),
    "writes": (DECORATED.replace("Tensor x,", "Tensor(a!) x,"), "writes or gives back what it takes"),
    "several results": (
        DECORATED.replace("-> Tensor", "-> (Tensor, Tensor)"),
        "does not take a tensor and give back one",
    ),
    "gives back": (DECORATED.replace("return x * 3 * k", "return x"), "may return what it takes"),
    "gradients": (DECORATED.replace('"CPU"', '"AutogradCPU"'), "custom_op has no word for"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_reason(name: str) -> None:
    before, reason = REFUSED[name]
    text = (before + MODEL).replace("{space}", "legacy_refused")
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals


OPERATORS = """import numpy as np
import torch
from torch import nn


@torch.library.custom_op("{space}::gram", mutates_args=())
def gram(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = nn.functional.linear(x, w)
    return y @ y.transpose(-1, -2)


@torch.library.custom_op("{space}::ranked", mutates_args=())
def ranked(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = x.numpy()
    order = np.argsort(a, axis=-1)
    return torch.from_numpy(np.tanh(a)), torch.from_numpy(order)


class M(nn.Module):
    def forward(self, x):
        values, order = ranked(x)
        return gram(x, x[:2]), values.gather(-1, order), order + 1
"""


def test_a_fake_kernel_has_the_shapes_and_dtypes_of_its_operator() -> None:
    before, mine = (OPERATORS.replace("{space}", f"faked_{end}") for end in ("a", "b"))
    mended = mend(mine)
    assert not mended.refusals
    assert_equivalent(before, mended.text, [(torch.tensor([[0.5, -1.0, 2.0]]).repeat(3, 1),)])


def test_a_shape_that_cannot_be_told_is_not_made_up() -> None:
    mended = mend(
        OPERATORS.replace("{space}", "faked_c").replace(
            "torch.from_numpy(np.tanh(a))", "torch.from_numpy(a.sum(1))"
        )
    )
    assert any("`sum` gives another shape than `x` has" in each for each in mended.refusals), mended.refusals
