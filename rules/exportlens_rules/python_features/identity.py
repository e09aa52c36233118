"""`id(t)` and `id(module)`."""

from __future__ import annotations

from exportlens.outcome import BAKED, FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class Identity(CallOf):
    """`id(...)` is frozen at export.

    ## What it does
    Finds `id(...)` in traced code whose result may reach the program: on tensors, Modules and other objects.

    ## Why it matters
    An identity is an address of the tracing process. As a number it is frozen into the program; as a dict key
    it only works within one trace. Older torch fails in strict mode.

    ## References
    - https://docs.python.org/3/library/functions.html#id
    """

    code = "EXL301"
    name = "identity"
    outcome = Outcome(BAKED, BAKED, before={"2.8": (FAILS, BAKED)})
    no_fix = (
        "what the identity stands for is not provable: use a key of your own, such as the name of the layer"
    )
    callees = ("builtins.id",)
    wrong = "is an address of the tracing process: the program keeps it as a constant."
    advice = "Use a name or an index that you give yourself."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + id(x) % 1009
""",
            good="""
def forward(self, x):
    return x + 7
""",
        ),
    )
