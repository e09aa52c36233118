"""Hooks registered while tracing."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class HooksInForward(CallOf):
    """A hook of a Module is registered in forward.

    ## What it does
    Finds `register_forward_hook`, `register_forward_pre_hook` and `register_full_backward_hook` in traced
    code. Forward hooks registered in `__init__` are fine.

    ## Why it matters
    Strict tracing does not support changing the hooks of a Module while it runs.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
    """

    code = "EXL324"
    name = "hooks-in-forward"
    outcome = Outcome(FAILS, OK)
    no_fix = "what the hook leaves behind is not provable: register it once in `__init__`, or return what it collects"
    callees = (
        "torch.nn.Module.register_forward_hook",
        "torch.nn.Module.register_forward_pre_hook",
        "torch.nn.Module.register_full_backward_hook",
        "torch.nn.Module.register_full_backward_pre_hook",
        "torch.nn.Module.register_backward_hook",
    )
    wrong = "changes the hooks of a Module while tracing: strict tracing fails."
    advice = "Register hooks in `__init__`, or return the tensor."
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
        handle = self.layer.register_forward_hook(lambda module, args, output: output * 2)
        y = self.layer(x)
        handle.remove()
        return y
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) * 2
""",
        ),
    )
