"""What strict tracing cannot be asked about a tensor or the current mode."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class InferenceState(CallOf):
    """Code asks whether inference mode is on, or whether a tensor's memory is pinned.

    ## What it does
    Finds `torch.is_inference_mode_enabled()`, `t.is_inference()` and `t.is_pinned()` in traced code.

    ## Why it matters
    Strict tracing has no answer and fails. Non-strict tracing answers with what holds while tracing, which the program
    keeps. `torch.is_grad_enabled()` is known in both modes.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.is_inference_mode_enabled.html
    """

    code = "EXL329"
    name = "inference-state"
    outcome = Outcome(FAILS, OK)
    callees = (
        "torch.is_inference_mode_enabled",
        "torch.is_inference",
        "torch.Tensor.is_inference",
        "torch.Tensor.is_pinned",
    )
    wrong = "has no answer in strict tracing, which fails here."
    advice = "Ask torch.is_grad_enabled(), or decide by configuration."
    examples = (
        Example(
            bad="""
def forward(self, x):
    if torch.is_inference_mode_enabled():
        return x
    return x + 1
""",
            good="""
def forward(self, x):
    if torch.is_grad_enabled():
        return x + 1
    return x + 1
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x + 1 if not x.is_inference() else x
""",
            good="""
def forward(self, x):
    return x + 1
""",
        ),
    )
