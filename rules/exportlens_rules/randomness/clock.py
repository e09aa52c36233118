"""`time.time()` and relatives."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import BAKED, FAILS, Outcome
from exportlens.rewriting.calls.clocks import clock_in_eager_only
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class Clock(CallOf):
    """The clock is read while tracing.

    ## What it does
    Finds `time.time`, `perf_counter`, `monotonic`, `sleep` and `datetime.now` in traced code.

    ## Why it matters
    Strict tracing fails; non-strict tracing freezes the moment of the export into the program.

    ## References
    - https://docs.python.org/3/library/time.html
    """

    code = "EXL504"
    name = "clock"
    left_to_python = True
    outcome = Outcome(FAILS, BAKED)
    callees = (
        "time.time",
        "time.time_ns",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.monotonic",
        "time.monotonic_ns",
        "time.process_time",
        "time.clock",
        "time.ctime",
        "time.localtime",
        "time.strftime",
        "time.sleep",
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
        "datetime.datetime.today",
        "datetime.date.today",
    )
    wrong = "reads the clock while tracing: strict tracing fails, or the moment of the export is frozen."
    advice = "Measure outside of the model, or pass the time in as a tensor."
    examples = (
        Example(
            bad="""
import time

from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + time.perf_counter_ns() % 1000003
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return clock_in_eager_only(report.place, context)
