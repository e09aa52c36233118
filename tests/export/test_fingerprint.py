"""Programs are told apart by what they do: both modes mostly give one program, which is then compared once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from exportlens.export.worker.graph import fingerprint
from torch import nn

X, Y = torch.ones(3, 4), torch.full((3, 4), 2.0)


class Net(nn.Module):
    """Uses its parameters in another order than it makes them in."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.late = nn.Linear(4, 4)
        self.early = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))
        self.function = function

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x.sum(0))
        mixed: torch.Tensor = self.function(self.late(self.early(x)), y)
        return mixed + self.seen


def seen(
    function: Callable[[Any, Any], Any] = torch.sub,
    *,
    strict: bool = False,
    most: int = 64,
    weight: float = 0.0,
) -> str | None:
    model = Net(function)
    with torch.no_grad():
        model.early.weight += weight
    rows = torch.export.Dim("rows", max=most)
    program = torch.export.export(
        model, (X, Y), dynamic_shapes={"x": {0: rows}, "y": {0: rows}}, strict=strict
    )
    return fingerprint(program)


def test_both_modes_of_one_model_give_one_program() -> None:
    assert seen() is not None
    assert seen() == seen(strict=True)


@pytest.mark.parametrize(
    "other",
    [
        {"function": torch.add},
        {"function": lambda one, two: two - one},
        {"function": lambda one, two: (one - two).to(torch.float64)},
        {"most": 32},
        {"weight": 1e-6},
    ],
    ids=["operator", "order", "type", "range", "weight"],
)
def test_what_differs_in_anything_is_another_program(other: dict[str, Any]) -> None:
    assert seen(**other) not in (None, seen())


def test_a_frozen_number_makes_another_program() -> None:
    assert seen(lambda one, two: one * 2 - two) != seen(lambda one, two: one * 3 - two)
