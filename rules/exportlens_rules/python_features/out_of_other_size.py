"""`out=` of an empty tensor."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.out_arguments import is_empty, without_out
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class OutOfOtherSize(CallOf):
    """A function of torch is to write to an empty tensor.

    ## What it does
    Finds calls like `torch.zeros(2, 3, out=x.new())` and `torch.arange(n, out=torch.LongTensor())`.

    ## Why it matters
    torch makes the empty tensor as large as the result. Strict tracing takes `out` only where it has the size
    of the result already, and fails. Code from before torch 0.4 chose the type and the device in this way.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.zeros.html
    """

    code = "EXL345"
    name = "out-of-other-size"
    outcome = Outcome(FAILS, OK)
    callees = ("torch.*",)
    wrong = "is to write to an empty tensor, which torch makes larger: strict tracing fails."
    advice = "Let torch make the tensor, of the same `dtype` and `device`."
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        hidden = torch.zeros(2, 4, out=x.data.new())
        return hidden.sum(0) + x
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        hidden = torch.zeros(2, 4, dtype=x.dtype, device=x.device)
        return hidden.sum(0) + x
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        places = torch.arange(x.size(1), out=torch.LongTensor())
        return x * places
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        places = torch.arange(x.size(1), dtype=torch.int64)
        return x * places
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        if "out" not in place.kwargs or not isinstance(place.node, ast.Call):
            return False
        return any(key.arg == "out" and is_empty(key.value) for key in place.node.keywords)

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return without_out(report.place, context)
