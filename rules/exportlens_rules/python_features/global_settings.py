"""Global settings of torch changed in forward."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.contexts import entered_in_eager_only
from exportlens.rewriting.checks.guards import statement_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class GlobalSettings(CallOf):
    """A global setting of torch is changed while tracing.

    ## What it does
    Finds `torch.set_num_threads`, `torch.autograd.set_detect_anomaly`, `torch.autograd.detect_anomaly`,
    `torch.backends.cudnn.flags`, `torch.jit.optimized_execution` and the like in traced code.

    ## Why it matters
    Strict tracing fails; in non-strict mode the setting holds while tracing, not in the program.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL326"
    name = "global-settings"
    outcome = Outcome(FAILS, OK)
    of_optional_inputs = False
    callees = (
        "torch.set_num_threads",
        "torch.set_num_interop_threads",
        "torch.autograd.set_detect_anomaly",
        "torch.autograd.detect_anomaly",
        "torch.autograd.anomaly_mode.set_detect_anomaly",
        "torch.autograd.anomaly_mode.detect_anomaly",
        "torch.autograd.set_multithreading_enabled",
        "torch.autograd.grad_mode.set_multithreading_enabled",
        "torch.backends.cudnn.flags",
        "torch.backends.mkldnn.flags",
        "torch.jit.optimized_execution",
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

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        entered = entered_in_eager_only(report.place, context)
        return (
            entered
            if isinstance(entered, Fix)
            else statement_not_while_compiling(report.place, context, for_compile=True)
        )
