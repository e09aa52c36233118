"""Chained comparisons and `in` on tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Place, Truth
from exportlens.inference.values import Tensor, TensorScalar
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.decisions.asked_identity import number_itself
from exportlens.rewriting.numbers.python_numbers import extreme_of_pairs, extreme_of_tensor, symbolic_extreme
from exportlens.rule import Example, Report

from exportlens_rules.control_flow.decision import Decision
from exportlens_rules.reading import is_tested, words

_OF_FLOATS = Outcome(OK, FAILS)
_OF_IDENTITY = Outcome(WRONG, WRONG)
_SUPERLATIVES = {"max": "largest", "min": "smallest"}
_COMPARED_AT_ONCE = 2


class DataDependentComparison(Decision):
    """`a < t < b` or `x in tensor` decides on tensor data.

    ## What it does
    Finds chained comparisons and membership tests on tensors and on lists of their numbers, `index`, `count` and `itertools.groupby` of such lists,
    numbers read out of tensors that `is` compares with constants, and Python's `max()` and `min()` of floats that were read out of
    tensors, of one tensor alone, or of more than two tensors.

    ## Why it matters
    `a < t < b` is `a < t and t < b`, and `in` compares until it finds a match: both take a decision on the
    way. `max()` compares as well: non-strict tracing has an operator for whole numbers alone. `t.item() is True` asks for the very
    object: the symbol that stands for the number is none of Python's, so that the program always takes it for False.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.isin.html
    """

    code = "EXL110"
    name = "data-dependent-comparison"
    outcome = Outcome(FAILS, FAILS)
    places = (Truth, Conversion)
    contexts = ("compare", "in")
    words = "A chained comparison or `in`"
    advice = "Write (a < t) & (t < b), or torch.isin."
    examples = (
        Example(
            bad="""
def forward(self, x):
    inside = -100 < x.sum() < 100
    return x, inside
""",
            good="""
def forward(self, x):
    total = x.sum()
    inside = (-100 < total) & (total < 100)
    return x, inside
""",
        ),
        Example(
            bad="""
def forward(self, x):
    total = max((x > 0).float().sum().item(), 1.0)
    return x / total
""",
            good="""
def forward(self, x):
    total = (x > 0).float().sum().clamp(min=1.0)
    return x / total
""",
            outcome=_OF_FLOATS,
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return x / max(x[:, 0])
""",
            good="""
def forward(self, x: torch.Tensor):
    return x / x[:, 0].max()
""",
            inputs="(torch.rand(3, 4),)",
            outcome=_OF_FLOATS,
        ),
        Example(
            bad="""
def forward(self, x):
    return x * max(x.sum(), x.mean(), x.amin())
""",
            good="""
def forward(self, x):
    return x * max(max(x.sum(), x.mean()), x.amin())
""",
            outcome=_OF_FLOATS,
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return x, (x > 0).long().tolist().count(1)
""",
            good="""
def forward(self, x: torch.Tensor):
    return x, ((x > 0).long() == 1).sum().item()
""",
            inputs="(torch.rand(3),)",
        ),
        Example(
            bad="""
def forward(self, x):
    large = (x.sum() > 0).item() is True
    return x * large
""",
            good="""
def forward(self, x):
    large = x.sum() > 0
    return x * large
""",
            outcome=_OF_IDENTITY,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, Conversion):
            if place.to == "compare" and isinstance(place.value, Tensor):
                yield self.report(
                    place,
                    f"`{words(place.node)}` asks Python for the {_SUPERLATIVES[place.use]} item of a tensor: non-strict tracing "
                    f"has no operator for one argument. Use the tensor's own `.{place.use}()`.",
                    outcome=_OF_FLOATS,
                )
            elif (
                place.to == "compare"
                and isinstance(place.value, TensorScalar)
                and place.value.type == "float"
            ):
                yield self.report(
                    place,
                    f"`{words(place.node)}` compares a float that was read out of tensor data: non-strict tracing "
                    "cannot decide. Use torch.clamp, or torch.maximum or torch.minimum.",
                    outcome=_OF_FLOATS,
                )
        elif isinstance(place, Truth) and place.context == "is":
            if isinstance(place.node, ast.Compare) and _is_refused_itself(place.node.left):
                return
            yield self.report(
                place,
                f"`{words(place.node)}` asks whether a number that was read out of tensor data is this very object: while tracing it "
                "is a symbol, which never is, and the program keeps that answer. Ask the number itself, or compare by ==.",
                outcome=_OF_IDENTITY,
            )
        elif isinstance(place, Truth) and place.context in _SUPERLATIVES:
            if isinstance(place.node, ast.Call) and len(place.node.args) > _COMPARED_AT_ONCE:
                yield self.report(
                    place,
                    f"`{words(place.node)}` compares several tensors: non-strict tracing has an operator for two. Compare them "
                    f"two by two, or use torch.stack and `.{place.context}()`.",
                    outcome=_OF_FLOATS,
                )
        else:
            yield from super().check(place)

    def applies(self, place: Truth) -> bool:
        return isinstance(place.node, ast.Call) or not is_tested(place)

    def message(self, place: Truth) -> str:
        if isinstance(place.node, ast.Call) and _groups(place.node):
            return (
                f"`{words(place.node)}` compares each number that was read out of tensor data with the one before: torch.export cannot "
                "trace it. Compare the tensor with itself: t[1:] != t[:-1], or use torch.unique_consecutive."
            )
        if isinstance(place.node, ast.Call):
            return (
                f"`{words(place.node)}` compares numbers that were read out of tensor data until one is equal: torch.export cannot "
                "trace it. Compare the tensor: (t == n).sum(), or (t == n).int().argmax()."
            )
        return super().message(place)

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        if isinstance(report.place, Conversion):
            if isinstance(report.place.value, Tensor):
                return extreme_of_tensor(report.place, context)
            return symbolic_extreme(report.place, context)
        if isinstance(report.place, Truth) and report.place.context == "is":
            return number_itself(report.place, context)
        if isinstance(report.place, Truth) and report.place.context in _SUPERLATIVES:
            return extreme_of_pairs(report.place, context)
        return super().fix(report, context)


def _groups(node: ast.Call) -> bool:
    """Whether `node` is a call of `itertools.groupby`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name == "groupby"


def _is_refused_itself(node: ast.expr) -> bool:
    """Whether `node` is `bool(t)`, which another rule finds."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool"
