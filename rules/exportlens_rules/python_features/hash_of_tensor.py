"""`hash(t)`."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.outcome import BAKED, FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_tensor


class HashOfTensor(CallOf):
    """A tensor is hashed.

    ## What it does
    Finds `hash(...)` of traced tensors.

    ## Why it matters
    The hash of a tensor is its identity: strict tracing fails, non-strict tracing freezes the number.

    ## References
    - https://docs.python.org/3/library/functions.html#hash
    """

    code = "EXL302"
    name = "hash-of-tensor"
    outcome = Outcome(FAILS, BAKED)
    callees = ("builtins.hash",)
    wrong = "hashes the identity of a tensor, which is another in each process."
    advice = "Use a name or an index that you give yourself."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + hash(x) % 1009
""",
            good="""
def forward(self, x):
    return x + 7
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return is_tensor(place.argument(0, "object"))
