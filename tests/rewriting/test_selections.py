"""torch.where is offered beside torch.cond where both sides are cheap, pure, and certainly of one shape and dtype."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from exportlens.config import Config
from exportlens.engine import Engine
from exportlens.finding import Fix
from exportlens.fixing import apply_edits
from exportlens.outcome import Mode

from tests.rewriting.driving import assert_equivalent, assert_programs_equal
from tests.rewriting.fixing_all import mend

FILE = Path("/model.py")
HEAD = """import torch
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor):
"""
OFFERED = {
    "assignment": (
        "if x.sum() > 0:\n    x = x * 2 - 1\nreturn x",
        "x = torch.where(x.sum() > 0, x * 2 - 1, x)",
    ),
    "both sides": (
        "if x.mean() < 0:\n    y = x / 2\nelse:\n    y = x * 0.5\nreturn y",
        "y = torch.where(x.mean() < 0, x / 2, x * 0.5)",
    ),
    "returns": ("if x.max() > 1:\n    return -x\nreturn x + 1", "return torch.where(x.max() > 1, -x, x + 1)"),
    "ternary": ("return x + 1 if x.sum() > 0 else x - 1", "torch.where(x.sum() > 0, x + 1, x - 1)"),
}
NOT_OFFERED = {
    "another shape": "if x.sum() > 0:\n    x = x * x.mean()\nreturn x",
    "another tensor": "y = x.exp()\nif x.sum() > 0:\n    x = y * 2\nreturn x",
    "perhaps another dtype": "if x.sum() > 0:\n    x = x * 0.5\nreturn x",
    "random": "if x.sum() > 0:\n    x = torch.rand_like(x)\nreturn x",
}


def fix_of(body: str) -> tuple[str, Fix]:
    text = HEAD + textwrap.indent(body, "        ") + "\n"
    engine = Engine(Config(root=Path("/"), modes=(Mode.STRICT, Mode.NON_STRICT)))
    engine.update(FILE, text)
    finding = engine.with_fixes(engine.check(FILE))[0]
    assert finding.fix is not None
    return text, finding.fix


@pytest.mark.parametrize("name", OFFERED)
def test_offered_and_equal(name: str) -> None:
    body, expected = OFFERED[name]
    text, fix = fix_of(body)
    assert fix.message == "Rewrite with torch.cond"
    (other,) = fix.alternatives
    selected = apply_edits(text, other.edits)
    assert expected in selected
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    assert_programs_equal([(text, selected)], [[(x,), (x.abs(),), (-x.abs(),)]], modes=(False,))


@pytest.mark.parametrize("name", NOT_OFFERED)
def test_not_offered(name: str) -> None:
    _, fix = fix_of(NOT_OFFERED[name])
    assert fix.alternatives == ()


LOST = """import torch
from torch import nn


def normalized(x, kind):
    if not torch.all((x >= 0) * (x <= 1)):
        x = x.sigmoid() if kind == "sigmoid" else torch.softmax(x, dim=1)
    return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.seen = None

    def forward(self, x):
        self.calls = x.mean()
        self.seen = normalized(x, "softmax")
        return self.seen + self.calls
"""


def test_selected_where_tracing_would_lose_what_is_written_behind_an_operator() -> None:
    text = mend(LOST).text
    assert "torch.where(" in text and "torch.cond" not in text
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    assert_equivalent(LOST, text, [(x,), (x.abs() / 10,)])
