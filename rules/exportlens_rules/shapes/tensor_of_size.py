"""The old tensor constructors, given a size."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.legacy import TENSOR_TYPES
from exportlens.inference.places import Call
from exportlens.inference.values import Sequence
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.sizes import empty_for_size
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf


class TensorOfSize(CallOf):
    """`torch.FloatTensor(x.size())` and its kin.

    ## What it does
    Finds `torch.Tensor`, `torch.FloatTensor` and the like that are given a `torch.Size` as only argument.

    ## Why it matters
    Eager makes an empty tensor of that size; strict tracing takes the size for a list of numbers and makes a
    tensor of those, which fits nothing that follows. `torch.empty(size)` is plain.

    ## References
    - https://docs.pytorch.org/docs/stable/tensors.html
    """

    code = "EXL416"
    name = "tensor-of-size"
    outcome = Outcome(FAILS, OK)
    callees = tuple(f"torch.{name}" for name in ("Tensor", *TENSOR_TYPES))
    wrong = "is taken by strict tracing for a tensor of the numbers in the size."
    advice = "Use torch.empty or torch.zeros."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + torch.FloatTensor(x.size()).fill_(1)
""",
            good="""
def forward(self, x):
    return x + torch.ones(x.size())
""",
            inputs="(torch.randn(2, 5),)",
        ),
    )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return empty_for_size(report.place, context)

    def applies(self, place: Call) -> bool:
        if len(place.args) != 1 or place.kwargs:
            return False
        size = place.args[0]
        return isinstance(size, Sequence) and size.type_name == "torch.Size"
