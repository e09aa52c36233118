"""`torch._dynamo.graph_break()` and relatives."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.checks.guards import statement_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class CompilerDirectives(CallOf):
    """A directive for torch.compile stops strict tracing.

    ## What it does
    Finds calls that force a graph break, such as `torch._dynamo.graph_break()`.

    ## Why it matters
    torch.compile may leave the graph; torch.export must not.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_api.html
    """

    code = "EXL317"
    name = "compiler-directives"
    outcome = Outcome(FAILS, OK)
    callees = (
        "torch._dynamo.graph_break",
        "torch._dynamo.skip_frame",
        "torch._dynamo.step_unsupported",
    )
    wrong = "forces a graph break: torch.export must capture one whole graph."
    advice = "Remove it."
    examples = (
        Example(
            bad="""
def forward(self, x):
    torch._dynamo.graph_break()
    return x + 1
""",
            good="""
def forward(self, x):
    return x + 1
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        return statement_not_while_compiling(report.place, context, for_compile=True)
