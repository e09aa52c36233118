"""Lists of layers of which tensor data chooses one: what keeps the choice among their results from being the same."""

from __future__ import annotations

import pytest

from tests.rewriting.fixing_all import mend

TEXT = """import torch
import torch.nn.functional as F
from torch import nn


class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        {inner}

    def forward(self, x):
        {forward}


class Layer(nn.Module):
    def __init__(self, width, norm=nn.LayerNorm):
        super().__init__()
        self.inner = Inner(width)
        {layer}

    def forward(self, x):
        return torch.relu(self.inner(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        width, widths = 4, [4, 4, 4]
        {made}

    def forward(self, x):
        return self.layers[x.sum(0).argmax() % 3](x)
"""
ALIKE = "self.layers = nn.ModuleList([Layer(width) for _ in range(3)])"


def _text(
    inner: str = "pass", forward: str = "return self.linear(x)", layer: str = "pass", made: str = ALIKE
) -> str:
    return TEXT.format(inner=inner, forward=forward, layer=layer, made=made.replace("\n", "\n" + " " * 8))


def test_layers_of_layers_are_chosen_among() -> None:
    assert "torch.stack([each(x) for each in self.layers])" in mend(_text()).text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_text(inner="self.norm = nn.BatchNorm1d(width)"), id="state further in"),
        pytest.param(_text(layer="self.norm = norm(width)"), id="a class that is given"),
        pytest.param(_text(forward="return self.linear(F.relu(x, True))"), id="a function that writes"),
        pytest.param(_text(forward="return self.linear(x).max(1)"), id="several tensors"),
        pytest.param(_text(inner="self.drop = nn.Dropout(0.1, True)"), id="a layer that writes"),
        pytest.param(_text(made=ALIKE + "\nself.layers[0] = nn.Linear(4, 3)"), id="a layer replaced"),
        pytest.param(
            _text(made="self.layers = nn.ModuleList([nn.Linear(4, widths.pop()) for _ in range(3)])"),
            id="another width each",
        ),
        pytest.param(
            _text(
                made="self.layers = nn.ModuleList()\nfor _ in range(3):\n"
                "    self.layers.append(nn.Linear(4, width))\n    width = width * 2"
            ),
            id="a width that grows",
        ),
    ],
)
def test_others_are_not_stacked(text: str) -> None:
    assert "torch.stack([each(x)" not in mend(text).text


COUNTED = "self.linear(x) + self.count"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            _text(made=ALIKE + "\nself.layers[0] = nn.Linear(4, 3)"),
            "how many items `self.layers` has is not written in the file",
            id="an item set anew",
        ),
        pytest.param(
            _text(layer="self.wide = nn.Linear(width, width)")
            .replace(
                "def __init__(self):\n        super().__init__()\n        width, widths",
                "def __init__(self, count=3):\n        super().__init__()\n        width, widths",
            )
            .replace("range(3)", "range(count)")
            .replace("nn.ModuleList([Layer(width)", "nn.ModuleList([nn.GRUCell(4, 4)"),
            "how many items `self.layers` has is not written in the file",
            id="as many as the constructor is told",
        ),
        pytest.param(
            _text(
                inner='self.register_buffer("count", torch.zeros(4))',
                forward=f"self.count += 1; return {COUNTED}",
            ),
            "calls a submodule that writes its `count`",
            id="a layer whose part keeps state",
        ),
        pytest.param(
            _text(
                inner='self.register_buffer("count", torch.zeros(4))',
                forward=f"\n        if not self.training:\n            self.count += 1\n        return {COUNTED}",
            ),
            "calls a submodule that writes its `count`",
            id="a layer whose part keeps state in use",
        ),
        pytest.param(
            _text(inner="self.seen = []", forward="self.seen.append(x); return self.linear(x)"),
            "calls a submodule that writes its `seen`",
            id="a layer whose part keeps a list",
        ),
        pytest.param(
            _text().replace(
                "return self.layers[x.sum(0).argmax() % 3](x)",
                "steps = [lambda v: v.add_(1), torch.tanh]\n        return steps[x.sum(0).argmax() % 2](x)",
            ),
            "it is not known what `steps[0]` does",
            id="a function without a name",
        ),
    ],
)
def test_what_may_be_another_item_is_not_chosen(text: str, reason: str) -> None:
    mended = mend(text)
    assert mended.text == text
    assert any(reason in each for each in mended.refusals), mended.refusals


def test_an_item_is_not_chosen_where_the_error_is_caught() -> None:
    text = _text(made="self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])").replace(
        "return self.layers[x.sum(0).argmax() % 3](x)",
        "try:\n            return self.layers[x.sum(0).argmax()](x)\n        except IndexError:\n            return x",
    )
    mended = mend(text)
    assert mended.text == text
    assert any("would be caught" in each for each in mended.refusals)


NUMBERS = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [0.5, 2.0, 4.0, 8.0]

    def forward(self, x):
        return x * self.scales[x.sum(0).argmax()]
"""


def test_numbers_are_chosen_by_an_index_of_the_host() -> None:
    chosen = (
        "torch.tensor(self.scales, dtype=torch.float64)[torch.full((1,), x.sum(0).argmax().item())].item()"
    )
    assert chosen in mend(NUMBERS).text


def test_an_index_that_is_counted_up_later_chooses_as_before() -> None:
    text = _text().replace(
        "return self.layers[x.sum(0).argmax() % 3](x)",
        "k = x.sum(0).argmax() % 3\n        layer = self.layers[k]\n        k += 1\n        return layer(x) * k",
    )
    assert "chosen=k.reshape(1).long().clone()" in mend(text).text
