"""Shape-changing in-place methods on inputs."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class ViewOfInputInPlace(CallOf):
    """`x.t_()`, `x.unsqueeze_()` and the like change the shape of an input in place.

    ## What it does
    Finds in-place methods that change shape or strides, called on an argument of the model.

    ## Why it matters
    The caller's tensor would change its shape, which a program cannot express: strict tracing fails, and
    for some of them non-strict tracing as well.

    ## References
    - https://docs.pytorch.org/docs/stable/tensor_view.html
    """

    code = "EXL211"
    name = "view-of-input-in-place"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "whether a caller looks at the input's shape afterwards is not provable: use the form without `_`, and "
        "bind the name to its result"
    )
    callees = tuple(
        f"torch.Tensor.{name}"
        for name in ("t_", "transpose_", "swapaxes_", "squeeze_", "unsqueeze_", "as_strided_")
    )
    wrong = "changes the shape of an input in place: strict tracing fails."
    advice = "Use the method without the trailing underscore."
    examples = (
        Example(
            bad="""
def forward(self, x):
    x.t_()
    return x + 1
""",
            good="""
def forward(self, x):
    x = x.t()
    return x + 1
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return place.receiver is not None and all(
            isinstance(option, Tensor) and option.origin == "input" for option in options(place.receiver)
        )
