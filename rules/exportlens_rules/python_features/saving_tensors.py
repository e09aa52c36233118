"""`torch.save(t)` in forward."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.checks.guards import statement_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import tensors_in


class SavingTensors(CallOf):
    """A traced tensor is written to a file.

    ## What it does
    Finds `torch.save`, `numpy.save` and `pickle.dump` of traced tensors.

    ## Why it matters
    A traced tensor has no data to write: both modes fail.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.save.html
    """

    code = "EXL313"
    name = "saving-tensors"
    outcome = Outcome(FAILS, FAILS)
    callees = ("torch.save",)
    wrong = "writes a traced tensor, which has no data."
    advice = "Return the tensor and save it outside of the model."
    examples = (
        Example(
            bad="""
import io

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        torch.save(x, io.BytesIO())
        return x + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1, x
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return any(True for _ in tensors_in(place.argument(0, "obj")))

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        return statement_not_while_compiling(report.place, context)
