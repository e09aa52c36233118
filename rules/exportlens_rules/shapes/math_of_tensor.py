"""Functions of the math module on tensor data."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.python_numbers import torch_for_math
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, is_tensor, words

# Measured on torch 2.13 for a symbolic number (`t.item()`): these stay symbolic in both modes, or in strict
# mode.
_SYMBOLIC = frozenset({"ceil", "floor", "trunc"})
_SYMBOLIC_IN_STRICT = frozenset({"sqrt"})
_NON_STRICT_ONLY = Outcome(OK, FAILS)


class MathOfTensor(Rule):
    """A function of Python's math module is given tensor data.

    ## What it does
    Finds `math.sqrt(t)`, `math.log(t.item())`, `math.isnan(t)` and the like.

    ## Why it matters
    The math module computes with numbers of Python, which tensor data has none of while tracing. torch has
    the same functions on tensors.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.html#pointwise-ops
    """

    code = "EXL402"
    name = "math-of-tensor"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = ("math.*",)
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x * math.exp(x.mean())
""",
            good="""
def forward(self, x):
    return x * torch.exp(x.mean())
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x * math.sqrt((x * x).sum().item())
""",
            good="""
def forward(self, x):
    return x * torch.sqrt((x * x).sum())
""",
            outcome=_NON_STRICT_ONLY,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        given = next((value for value in place.args if is_data(value)), None)
        function = place.name.rpartition(".")[2]
        if given is None or function in ("prod", "fsum", "pow"):
            return
        if function in _SYMBOLIC and not is_tensor(given):
            return
        yield self.report(
            place,
            f"`{words(place.node)}` computes with a number of Python, which tensor data has none of while "
            "tracing. "
            f"Use torch.{function} on the tensor.",
            outcome=_NON_STRICT_ONLY if function in _SYMBOLIC_IN_STRICT and not is_tensor(given) else None,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return torch_for_math(report.place, context)
