"""gc, inspect.stack, traceback, sys.stdout."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.checks.guards import statement_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class InterpreterState(CallOf):
    """The state of the interpreter is looked at or changed.

    ## What it does
    Finds calls into `gc`, `traceback`, `sys.stdout`, `sys.settrace`, `inspect.stack` and relatives in traced
    code.

    ## Why it matters
    Strict tracing does not follow them; in non-strict mode they run once, while tracing. What only collects garbage or writes
    to a stream is kept out of the traced program; what gives a value is for you to decide.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL310"
    name = "interpreter-state"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "what the interpreter's state decides in the program is for you to say: ask for it in `__init__`, or "
        "where the model is called"
    )
    callees = (
        "gc.collect",
        "gc.disable",
        "gc.enable",
        "inspect.stack",
        "inspect.currentframe",
        "traceback.print_exc",
        "traceback.format_exc",
        "traceback.print_stack",
        "traceback.format_stack",
        "sys.stdout.write",
        "sys.stdout.flush",
        "sys.stderr.write",
        "sys.stderr.flush",
        "sys.settrace",
        "sys.getrefcount",
        "sys.exc_info",
    )
    wrong = "belongs to the interpreter, not to the program: strict tracing fails."
    advice = "Move it out of the code that is exported."
    examples = (
        Example(
            bad="""
def forward(self, x):
    import gc

    gc.collect()
    return x + 1
""",
            good="""
def forward(self, x):
    return x + 1
""",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if report.place.name.startswith(("gc.", "sys.stdout.", "sys.stderr.", "traceback.print_")):
            return statement_not_while_compiling(report.place, context)
        return Refusal(self.no_fix)
