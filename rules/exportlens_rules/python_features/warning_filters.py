"""`warnings.simplefilter` and relatives."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class WarningFilters(CallOf):
    """The filters of the warnings module are changed.

    ## What it does
    Finds `warnings.simplefilter`, `filterwarnings`, `resetwarnings` and `catch_warnings` in traced code.
    `warnings.warn` itself is fine.

    ## Why it matters
    Strict tracing does not follow them and fails.

    ## References
    - https://docs.python.org/3/library/warnings.html
    """

    code = "EXL314"
    name = "warning-filters"
    outcome = Outcome(FAILS, OK)
    no_fix = "the filter may be meant for what runs later: set it once, outside of the model"
    callees = (
        "warnings.simplefilter",
        "warnings.filterwarnings",
        "warnings.resetwarnings",
        "warnings.catch_warnings",
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
