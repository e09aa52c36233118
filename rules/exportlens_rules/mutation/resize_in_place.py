"""`resize_` and relatives."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class ResizeInPlace(CallOf):
    """A tensor is resized in place.

    ## What it does
    Finds `resize_` and `resize_as_` on traced tensors.

    ## Why it matters
    Strict tracing does not support them; the result may hold uninitialised memory in eager as well.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.resize_.html
    """

    code = "EXL208"
    name = "resize-in-place"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "what else shares the memory is not provable: make the tensor anew with `reshape` or `new_empty`, and "
        "bind the name to it"
    )
    callees = ("torch.Tensor.resize_", "torch.Tensor.resize_as_")
    wrong = "resizes a tensor in place: strict tracing does not support it."
    advice = "Use reshape, or allocate a tensor of the size that you need."
    examples = (
        Example(
            bad="""
def forward(self, x):
    y = x * 1
    y.resize_(4, 3)
    return y
""",
            good="""
def forward(self, x):
    y = x * 1
    return y.reshape(4, 3)
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return place.receiver is not None
