"""Devices written into a model: the original needs CUDA, the mended text runs and exports anywhere."""

from __future__ import annotations

import torch

from tests.rewriting.driving import copied, model, quietly
from tests.rewriting.fixing_all import mend

BEFORE = """import torch
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor, names=None):
        x = x.cuda()
        x = x.to("cuda")  # fast
        with torch.no_grad():
            x = x.cuda(non_blocking=True)
        mask = torch.ones(4).cuda(non_blocking=True)  # keep
        noise = torch.zeros(4, device="cuda:0") + torch.arange(4).to("cuda")
        return x * mask + noise
"""
AFTER = """import torch
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor, names=None):
        # fast
        with torch.no_grad():
            pass
        mask = torch.ones(4).to(x.device, non_blocking=True)  # keep
        noise = torch.zeros(4, device=x.device) + torch.arange(4).to(x.device)
        return x * mask + noise
"""
NO_TENSOR = """import torch
from torch import nn


class M(nn.Module):
    def mask(self):
        return torch.ones(4).cuda()

    def forward(self, x: torch.Tensor):
        return x * self.mask()
"""


def test_the_device_of_the_input_is_taken() -> None:
    mended = mend(BEFORE)
    assert mended.text == AFTER
    x = torch.randn(3, 4)
    with quietly():
        fixed = model(mended.text)
        program = torch.export.export(fixed, copied((x,))).module()
    assert torch.equal(program(x), fixed(x))


def test_refused_without_a_tensor_among_the_parameters() -> None:
    mended = mend(NO_TENSOR)
    assert mended.text == NO_TENSOR
    assert any("no parameter of the function" in reason for reason in mended.refusals)
