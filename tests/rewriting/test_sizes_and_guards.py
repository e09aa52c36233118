"""Lengths, dimensions, masks and switches of gradients: mended, exported in both modes, and equal."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from exportlens.checking import check_files, fix_files
from exportlens.finding import Applicability

from tests.rewriting.driving import assert_equivalent
from tests.rewriting.fixing_all import mend

HEAD = """import torch
from torch import nn


def centred(x: torch.Tensor, dims: list[int]):
    return x - x.mean(dim=dims, keepdim=True)


class M(nn.Module):
    def forward(self, x: torch.Tensor):
"""
MENDED = {
    "length": (
        "kept = x[x.sum(1) > -100]\nrows = {'n': len(kept)}\nreturn kept.sum() / rows['n'] + len(torch.unique(x))",
        "kept = x[x.sum(1) > -100]\nrows = {'n': kept.shape[0]}\nreturn kept.sum() / rows['n'] + torch.unique(x).shape[0]",
    ),
    "dimensions": (
        "dims = torch.arange(1, x.dim()).tolist()\nreturn x - x.mean(dim=dims, keepdim=True)",
        "dims = list(range(1, x.dim()))\nreturn x - x.mean(dim=dims, keepdim=True)",
    ),
    "dimensions that a helper is given": (
        "dims = torch.arange(1, len(x.shape)).tolist()\nif self.training:\n    dims = [0] + dims\nreturn centred(x, dims)",
        "dims = list(range(1, len(x.shape)))\nif self.training:\n    dims = [0] + dims\nreturn centred(x, dims)",
    ),
    "mask of bytes": (
        "mask = (x > 0).byte()\nreturn torch.where(mask[0].unsqueeze(0), x, -x) + x[mask].sum()",
        "mask = (x > 0).byte()\nreturn torch.where(mask[0].unsqueeze(0).bool(), x, -x) + x[mask.bool()].sum()",
    ),
    "switch of gradients": (
        "state = x * 2\nstate.requires_grad = True  # for training\nreturn state + 1",
        "state = x * 2\nif not torch.compiler.is_compiling():\n    state.requires_grad = True  # for training\nreturn state + 1",
    ),
}
REFUSED = {
    "gradients that are read": (
        "state = x * 2\nstate.requires_grad = True\ny = (state * 3).sum()\ng = torch.autograd.grad(y, state)[0]\nreturn g",
        "reads gradients in the same function",
    ),
    "dimensions from data": (
        "return x.sum(dim=x[0].argsort()[:1].tolist())",
        "do not come from `torch.arange(...).tolist()`",
    ),
    "rows without a name": (
        "return nn.functional.batch_norm(x[x.sum(1) > 0], torch.zeros(2), torch.ones(2)).sum()",
        "the rows have no name",
    ),
    "an item of a list": (
        "scales = [1.0, 2, 3.0, 4.0]\nreturn x * scales[x.sum(0).argmax()]",
        "has ints and floats, of which a tensor of ints gives other dtypes",
    ),
}


def text_of(body: str) -> str:
    return HEAD + textwrap.indent(body, " " * 8) + "\n"


def test_rows_that_may_be_none_are_for_the_user_to_promise(tmp_path: Path) -> None:
    body = "kept = x[x.sum(1) > -100]\ny = nn.functional.batch_norm(kept, torch.zeros(2), torch.ones(2))\nreturn y.sum()"
    file = tmp_path / "model.py"
    file.write_text(text_of(body))
    (found,) = [each for each in check_files([file], {"mode": "both"}).findings if each.code == "EXL423"]
    assert found.fix is not None and found.fix.applicability is Applicability.DISPLAY_ONLY
    assert [edit.content for edit in found.fix.edits] == ["torch._check(kept.shape[0] != 0)\n        "]
    assert mend(text_of(body)).text == text_of(body)


@pytest.mark.parametrize("name", MENDED)
def test_mended_and_equal(name: str) -> None:
    before, after = map(text_of, MENDED[name])
    assert mend(before).text == after
    x = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    assert_equivalent(before, after, [(x,), (-x,)])


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_reason(name: str) -> None:
    body, reason = REFUSED[name]
    mended = mend(text_of(body))
    assert mended.text == text_of(body)
    assert any(reason in each for each in mended.refusals), mended.refusals


def test_dimensions_counted_in_another_file(tmp_path: Path) -> None:
    helper, model = tmp_path / "helper.py", tmp_path / "model.py"
    helper.write_text(
        "import torch\n\n\ndef total(x: torch.Tensor, dims: list[int]):\n    return torch.sum(x, dim=dims)\n"
    )
    model.write_text(
        text_of("return total(x, dims=torch.arange(1, x.dim()).tolist())").replace(
            "\n\n\ndef", "\nfrom helper import total\n\n\ndef", 1
        )
    )
    checked = check_files([helper, model], {"mode": "both"})
    assert {each.path for each in checked.findings} == {helper, model}
    fix_files(checked, {"mode": "both"}, unsafe=True)
    assert set(checked.changed) == {model}
    assert "return total(x, dims=list(range(1, x.dim())))" in checked.changed[model]
    assert not checked.findings


def test_gradients_that_another_method_asks_for_keep_the_switch() -> None:
    """Non-strict tracing takes `torch.autograd.grad`, also where another method asks: without the switch it would not."""
    text = (
        "import torch\n\n\nclass M(torch.nn.Module):\n    def slope(self, x):\n"
        "        return torch.autograd.grad((x**3).sum(), x)[0]\n\n    def forward(self, x):\n"
        "        x = x.detach().requires_grad_()\n        return x + self.slope(x)\n"
    )
    mended = mend(text)
    assert mended.text == text
    assert any("asks for gradients in `slope`" in each for each in mended.refusals)
