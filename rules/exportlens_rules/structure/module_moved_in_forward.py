"""`module.to(...)` in forward."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.registration import lacks_parameters
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.modules_in_forward import stays_where_it_is
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class ModuleMovedInForward(CallOf):
    """A Module is moved or cast while tracing.

    ## What it does
    Finds `self.layer.to(...)`, `.float()`, `.half()`, `.cpu()` and the like on Modules in traced code. Modules
    without Parameters may be moved.

    ## Why it matters
    Moving a Module replaces its parameters, which non-strict tracing has exchanged for traced ones: it fails.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to
    """

    code = "EXL605"
    name = "module-moved-in-forward"
    outcome = Outcome(OK, FAILS)
    callees = (
        "torch.nn.Module.to",
        "torch.nn.Module.float",
        "torch.nn.Module.half",
        "torch.nn.Module.double",
        "torch.nn.Module.bfloat16",
        "torch.nn.Module.cpu",
        "torch.nn.Module.type",
    )
    wrong = "moves or casts a Module while tracing: non-strict tracing fails."
    advice = "Move the whole model before the export, and inputs inside of it."
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.layer.to(x.device)
        return self.layer(x)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return place.receiver is None or not lacks_parameters(place.receiver)

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return stays_where_it_is(report.place, context)
