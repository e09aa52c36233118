"""`int(t)` and `float(t)`."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Place
from exportlens.inference.values import Tensor, Value, options
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.numbers.python_numbers import item_for_number
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, words

# Strict tracing takes `int()` of a tensor into the program, but for a truth value it asks which it is; it knows no complex number.
_IN_BOTH = Outcome(FAILS, FAILS)
# Arithmetic that asks for the number, by what for.
_RECKONED = {
    "count": "reckons with a truth value that was read out of tensor data, and Python asks which it is: torch.export cannot know it. "
    "Count in a tensor: `(t > 2).sum().item()`.",
    "exponent": "raises a whole number to a power that was read out of tensor data, and Python asks whether that is negative: "
    "torch.export cannot know it. Write a base that is a float, or compute it with tensors.",
}


def _is_truth(value: Value) -> bool:
    return all(isinstance(option, Tensor) and option.dtype == "bool" for option in options(value))


class TensorToNumber(Rule):
    """`int(...)` or `float(...)` of tensor data.

    ## What it does
    Finds `int(t)`, `float(t)` and `complex(t)` on tensors, on `t.item()` and on sizes that depend on data, arithmetic with a truth
    value that was read out of tensor data, as in `sum(v > 2 for v in t.tolist())`, and powers such as `2 ** t.item()` of whole numbers.

    ## Why it matters
    Python demands a real number from `int()` and `float()`, so non-strict tracing stops with "Could not
    extract specialized integer from data-dependent expression". `t.item()` gives a symbolic number that the
    program keeps: use it without `int()` around it.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL401"
    name = "tensor-to-number"
    outcome = Outcome(OK, FAILS)
    places = (Conversion,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x * float(x.sum())
""",
            good="""
def forward(self, x):
    return x * x.sum()
""",
        ),
        Example(
            bad="""
def forward(self, x, n: torch.Tensor):
    return x.sum() + torch.zeros(int(n))
""",
            good="""
def forward(self, x, n: torch.Tensor):
    return x.sum() + torch.zeros(n.item())
""",
            inputs="(torch.randn(3), torch.tensor(3))",
        ),
        Example(
            bad="""
def forward(self, x):
    count = int((x > 0).sum().item())
    return x.sum() / count
""",
            good="""
def forward(self, x):
    count = (x > 0).sum()
    return x.sum() / count
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x * int((x > 0).any())
""",
            good="""
def forward(self, x):
    return x * (x > 0).any()
""",
            outcome=_IN_BOTH,
        ),
        Example(
            bad="""
def forward(self, x):
    return x * complex(x.sum().item(), 0)
""",
            good="""
def forward(self, x):
    return x * x.sum().to(torch.complex64)
""",
            outcome=_IN_BOTH,
        ),
        Example(
            bad="""
def forward(self, x, n: torch.Tensor):
    return x * sum(v > 2 for v in n.tolist())
""",
            good="""
def forward(self, x, n: torch.Tensor):
    return x * (n > 2).sum().item()
""",
            inputs="(torch.randn(3), torch.tensor([3, 1]))",
            outcome=_IN_BOTH,
        ),
        Example(
            bad="""
def forward(self, x):
    return x * 2 ** (x > 0).sum().item()
""",
            good="""
def forward(self, x):
    return x * 2.0 ** (x > 0).sum().item()
""",
            outcome=_IN_BOTH,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Conversion)
        if place.to in _RECKONED and is_data(place.value):
            yield self.report(place, f"`{words(place.node)}` {_RECKONED[place.to]}", outcome=_IN_BOTH)
        if place.to in ("int", "float", "complex") and is_data(place.value):
            yield self.report(
                place,
                f"`{words(place.node)}` demands a number of Python from tensor data: torch.export cannot "
                "know it. Keep "
                f"the tensor, or use `.item()` without `{place.to}()`.",
                outcome=_IN_BOTH
                if place.to == "complex" or (place.to == "int" and _is_truth(place.value))
                else None,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Conversion)
        if report.place.to in _RECKONED:
            return Refusal(
                "the arithmetic is of Python's numbers: compute it with tensors, and read the result out"
            )
        return item_for_number(report.place, context)
