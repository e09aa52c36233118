"""Methods that make a view of a tensor in place, on inputs and on what the model keeps."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.old_calls import view_for_in_place
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf

_BOTH = Outcome(FAILS, FAILS)
_LIVING_ON = frozenset({"input", "parameter", "buffer", "attribute"})


class ViewOfInputInPlace(CallOf):
    """`x.t_()`, `x.unsqueeze_()`, `x.detach_()` and the like make an input a view of itself.

    ## What it does
    Finds in-place methods that change shape or strides, and `detach_`, called on an argument of the model or on a Parameter, a
    buffer or another tensor that it keeps.

    ## Why it matters
    A tensor that lives on would change its shape, which a program cannot express: strict tracing fails, and
    for some of them non-strict tracing as well.

    ## References
    - https://docs.pytorch.org/docs/stable/tensor_view.html
    """

    code = "EXL211"
    name = "view-of-input-in-place"
    outcome = Outcome(FAILS, OK)
    callees = tuple(
        f"torch.Tensor.{name}"
        for name in (
            "t_",
            "transpose_",
            "swapaxes_",
            "swapdims_",
            "squeeze_",
            "unsqueeze_",
            "as_strided_",
            "detach_",
        )
    )
    wrong = "makes a tensor that lives on a view of itself: tracing fails."
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
        Example(
            bad="""
def forward(self, x):
    x.unsqueeze_(1)
    return x + 1
""",
            good="""
def forward(self, x):
    x = x.unsqueeze(1)
    return x + 1
""",
            outcome=_BOTH,
        ),
    )

    def outcome_of(self, place: Call) -> Outcome:
        of_input = any(option.origin == "input" for option in _tensors(place))
        if of_input:
            return _BOTH if place.name.endswith(".unsqueeze_") else self.outcome
        is_plain = all(option.origin == "attribute" for option in _tensors(place))
        return _BOTH if is_plain and not place.name.endswith(".detach_") else self.outcome

    def applies(self, place: Call) -> bool:
        return place.receiver is not None and all(
            isinstance(option, Tensor) and option.origin in _LIVING_ON and not option.converted
            for option in options(place.receiver)
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return view_for_in_place(report.place, context)


def _tensors(place: Call) -> list[Tensor]:
    found = options(place.receiver) if place.receiver is not None else ()
    return [option for option in found if isinstance(option, Tensor)]
