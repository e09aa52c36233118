"""What branches do in training alone, as BatchNorm keeps its statistics, they do after mending, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.rewriting.driving import model
from tests.rewriting.test_pairs import read

CASE = Path(__file__).parent / "cases" / "kept_in_training.txt"


def test_training_goes_on_as_before() -> None:
    before, after, inputs = read(CASE)
    one, other = (_trained(text, inputs) for text in (before, after))
    torch.testing.assert_close(one, other)


def _trained(text: str, inputs: list[tuple[Any, ...]]) -> list[Any]:
    torch.manual_seed(0)
    trained = model(text).train()
    results = [trained(*(each.clone() for each in given)) for given in inputs]
    return [*results, trained.state_dict()]
