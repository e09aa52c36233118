"""`eval`, `exec`, `globals()`, `dir()`."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class DynamicCode(CallOf):
    """Code that is only known when it runs.

    ## What it does
    Finds `eval`, `exec`, `compile`, `globals()`, `dir()` and `__import__` in traced code.

    ## Why it matters
    Strict tracing reads bytecode and does not follow them.

    ## References
    - https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/export/programming_model.html
    """

    code = "EXL309"
    name = "dynamic-code"
    outcome = Outcome(FAILS, OK)
    no_fix = "what the code does is only known when it runs: write it out, or run it in `__init__`"
    callees = (
        "builtins.eval",
        "builtins.exec",
        "builtins.compile",
        "builtins.globals",
        "builtins.dir",
        "builtins.__import__",
    )
    wrong = "is Python that strict tracing does not follow."
    advice = "Write the expression out, or use a dict of functions."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return eval("x + 1")
""",
            good="""
def forward(self, x):
    return x + 1
""",
        ),
    )
