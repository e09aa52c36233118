"""`assume_constant_result` on tensor data."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.inference.values import Function
from exportlens.outcome import FAILS, WRONG, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_tensor


class AssumedConstant(CallOf):
    """A function of tensors is declared constant.

    ## What it does
    Finds calls of functions under `torch.compiler.assume_constant_result` that are given traced tensors.

    ## Why it matters
    Strict tracing runs the function once and freezes what it returns for the example inputs; the program is
    wrong for all others. Non-strict tracing ignores the decorator and fails.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.compiler.assume_constant_result.html
    """

    code = "EXL706"
    name = "assumed-constant"
    outcome = Outcome(WRONG, FAILS)
    no_fix = (
        "whether the function is constant for all inputs is for you to say: compute it in `__init__`, or drop "
        "the decorator"
    )
    callees = ()
    wrong = "freezes what it returns for the example inputs."
    advice = "Remove the decorator and compute with tensors."
    examples = (
        Example(
            bad="""
import torch
from torch import nn


@torch.compiler.assume_constant_result
def total(x):
    return int(x.sum())


class M(nn.Module):
    def forward(self, x):
        return x + total(x)
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + x.sum()
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        function = place.callee
        marked = isinstance(function, Function) and any(
            name.endswith("assume_constant_result") for name in function.decorators
        )
        return marked and any(is_tensor(value) for value in place.args)
