"""Global settings of torch changed in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class GlobalSettings(CallOf):
    """A global setting of torch is changed while tracing.

    ## What it does
    Finds `torch.set_num_threads`, `torch.autograd.set_detect_anomaly`, `torch.autograd.detect_anomaly` and
    `torch.backends.cudnn.flags` in traced code.

    ## Why it matters
    Strict tracing fails; in non-strict mode the setting holds while tracing, not in the program.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL326"
    name = "global-settings"
    outcome = Outcome(FAILS, OK)
    of_optional_inputs = False
    no_fix = "what runs later may rely on the setting: set it once, where the model is called"
    callees = (
        "torch.set_num_threads",
        "torch.set_num_interop_threads",
        "torch.autograd.set_detect_anomaly",
        "torch.autograd.detect_anomaly",
        "torch.autograd.anomaly_mode.set_detect_anomaly",
        "torch.autograd.anomaly_mode.detect_anomaly",
        "torch.backends.cudnn.flags",
    )
    wrong = "changes a global setting while tracing: strict tracing fails."
    advice = "Set it outside of the model."
    examples = (
        Example(
            bad="""
def forward(self, x):
    torch.autograd.set_detect_anomaly(False)
    return x + 1
""",
            good="""
def forward(self, x):
    return x + 1
""",
        ),
    )
