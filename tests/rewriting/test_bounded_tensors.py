"""`max(t, 1)` in lists that become tensors: in eager it is a number where that is the bound."""

from __future__ import annotations

from tests.rewriting.bodies import assert_mended, assert_refused

HEAD = """import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, y):
"""


def test_bounds_in_the_list_are_torchs() -> None:
    body = "counts = (x - 0.9).gt(0).sum(0)\nreturn torch.tensor([6 / max(each, 1) for each in counts])"
    plain = "return torch.tensor([each / max(len(x), 1) for each in (x > 0.5).sum(0)])"
    bodies = {
        "with a tensor": (
            body,
            "counts = (x - 0.9).gt(0).sum(0)\nvalues = [6 / torch.clamp(each, min=1) for each in counts]\n"
            "return torch.stack(values).reshape(-1).detach() if values else torch.empty(0)",
        ),
        "of numbers": (
            plain,
            "values = [each / max(len(x), 1) for each in (x > 0.5).sum(0)]\n"
            "return torch.stack(values).reshape(-1).detach() if values else torch.empty(0)",
        ),
    }
    assert_mended(HEAD, bodies)


def test_bounds_in_a_list_that_has_a_name_are_refused() -> None:
    for body in (
        "shares = [6 / max(each, 1) for each in x.sum(0)]\nreturn torch.tensor(shares)",
        "return torch.tensor([max(x[0].sum(), 1), x[1].sum()])",
        "return torch.tensor([max(1, each) for each in x.sum(0)])",
    ):
        assert_refused(HEAD, body, "number in eager")
