"""`warnings.simplefilter` and relatives."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.checks.guards import statement_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class WarningFilters(CallOf):
    """The filters of the warnings module are changed.

    ## What it does
    Finds `warnings.simplefilter`, `filterwarnings` and `resetwarnings` in traced code. `warnings.warn` and
    `warnings.catch_warnings` are fine.

    ## Why it matters
    Strict tracing does not follow them and fails.

    ## References
    - https://docs.python.org/3/library/warnings.html
    """

    code = "EXL314"
    name = "warning-filters"
    outcome = Outcome(FAILS, OK)
    callees = (
        "warnings.simplefilter",
        "warnings.filterwarnings",
        "warnings.resetwarnings",
    )
    wrong = "changes the filters of the warnings module: strict tracing fails."
    advice = "Set filters once, outside of the model."
    examples = (
        Example(
            bad="""
import warnings

from torch import nn


class M(nn.Module):
    def forward(self, x):
        warnings.simplefilter("ignore")
        return x + 1
""",
            good="""
import warnings

from torch import nn

warnings.simplefilter("ignore")


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        return statement_not_while_compiling(report.place, context)
