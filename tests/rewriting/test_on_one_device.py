"""What is made of numbers is on the device of what it meets: pairs with torch.cond or while_loop where a rewrite gives a
device export on `meta`, which no machine lacks, and which like a GPU takes no tensors of the host beside its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree as pytree

from tests.rewriting.driving import model, quietly
from tests.rewriting.fixing_all import mend
from tests.rewriting.test_pairs import CASES, NEW, SAMPLE, read

OPERATORS = ("torch.cond(", "while_loop(")
# Under fake tensors torch.tensor makes none on `meta` (torch 2.13), as it does on a GPU.
MADE = """

def _made(data, dtype=None, device=None):
    return torch.tensor(data, dtype=dtype).to(device)
"""
# What a model's own code mixes already, before it is rewritten.
MIXED = {
    "begun_by_a_method_of_the_constructor": "a buffer is multiplied with `torch.eye`",
    "classes_that_data_counts": "`torch.zeros(2)` is subtracted from an input",
    "failures_caught": "an input is added to `torch.eye`",
    "padded_lists_that_data_leaves": "`torch.ones(n)` is combined with a comparison of inputs",
    "ring_of_rows": "an input is multiplied with a plain attribute, which does not move",
    "scattered_by_a_helper": "`torch.zeros(3, 4)` is added to what is like an input",
    # On `meta` there is no number to read where a loop's body is traced (torch 2.13); on a GPU there is.
    "counters_that_a_test_indexes_by": "the counter of a while_loop is read as a number in its body",
    # The only tensors are those of a list, which may be empty.
    "kept_of_a_given_list": "`torch.zeros(())` stands for the mean of an empty list",
}


def _is_given_a_device(case: Path) -> bool:
    before, after, _ = read(case)
    given = any(after.count(each) > before.count(each) for each in ("device=", ".device)"))
    return given and any(each in after for each in OPERATORS)


_GIVEN = [case for case in CASES if _is_given_a_device(case)]


@pytest.mark.parametrize(
    "case",
    [case for number, case in enumerate(_GIVEN) if case in NEW or number % SAMPLE == 0],
    ids=lambda case: case.stem,
)
def test_exports_on_one_device(case: Path) -> None:
    if case.stem in MIXED:
        pytest.skip(MIXED[case.stem])
    _, after, inputs = read(case)
    torch._dynamo.reset()
    text = re.sub(r"torch\.(as_)?tensor\(", "_made(", after) + MADE
    given = pytree.tree_map(
        lambda each: each.to("meta") if isinstance(each, torch.Tensor) else each, inputs[0]
    )
    with quietly():
        torch.export.export(model(text).to("meta"), given, strict=True)


HEAD = """
from typing import NamedTuple

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
"""


@pytest.mark.parametrize(
    ("body", "made"),
    [
        # Numbers that meet numbers only stay where they are.
        (
            """
    def forward(self, x: torch.Tensor):
        best = torch.tensor(0)
        if x.sum() > 0:
            best = torch.tensor(1)
        return x, best
""",
            ["torch.tensor(0)", "torch.tensor(1)"],
        ),
        # What is on the host by its own text stays there.
        (
            """
    def forward(self, x: torch.Tensor):
        loss = torch.zeros((), device="cpu")
        if x.sum() > 0:
            loss = x.sum()
        return loss
""",
            ['torch.zeros((), device="cpu")'],
        ),
        # An argument that may be left out has no device.
        (
            """
    def forward(self, x: torch.Tensor, y: torch.Tensor = None):
        loss = torch.zeros(())
        if x.sum() > 0:
            loss = (y * self.w).sum()
        return loss
""",
            ["torch.zeros((), device=self.w.device)"],
        ),
        # A name that is bound to something else by then is no tensor.
        (
            """
    def forward(self, x: torch.Tensor):
        total = (x * self.w).sum()
        x = None
        if total > 1:
            result = torch.zeros(())
        else:
            result = total * 2
        return result
""",
            ["torch.zeros((), device=self.w.device)"],
        ),
        # The device is that of what torch.where takes, not of what it asks.
        (
            """
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        h = torch.zeros(3)
        if x.sum() > 0:
            h = torch.where(lengths > 1, x[:, 0], h)
        return h
""",
            ["torch.zeros(3, device=x.device)"],
        ),
        # Each part of a named tuple is where that of the other one is.
        (
            """
    def forward(self, x: torch.Tensor):
        top = x.sum(1).topk(2)
        if top.values[0] < 1:
            return Found(top.values, row=torch.full((2,), -1))
        return Found(top.values * 2, top.indices)


class Found(NamedTuple):
    value: torch.Tensor
    row: torch.Tensor
""",
            ["row=torch.full((2,), -1, device=x.device)"],
        ),
        # A list over lines, with its comma.
        (
            """
    def forward(self, x: torch.Tensor):
        total = torch.tensor(
            [0.0, 1.0],
        )
        if x.sum() > 1:
            total = total + x[0, :2]
        return total
""",
            ["[0.0, 1.0], device=x.device\n"],
        ),
    ],
)
def test_devices_given(body: str, made: list[str]) -> None:
    text = mend(HEAD + body).text
    assert "torch.cond" in text
    assert [each for each in made if each not in text] == [], text
