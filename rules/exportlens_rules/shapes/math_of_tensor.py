"""Functions of the math module, and searches among sorted numbers, on tensor data."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.decisions.bisected import BISECTING, bucketized, close_to_zero
from exportlens.rewriting.numbers.math_calls import torch_for_math
from exportlens.rewriting.numbers.python_numbers import quotient_and_rest
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, is_tensor, words

# Measured on torch 2.13 for a symbolic number (`t.item()`): these stay symbolic in both modes, or in strict
# mode.
_SYMBOLIC = frozenset({"ceil", "floor", "trunc"})
_SYMBOLIC_IN_STRICT = frozenset({"sqrt"})
_NON_STRICT_ONLY = Outcome(OK, FAILS)
_STRICT_ONLY = Outcome(FAILS, OK)
# What `pow` takes without a modulus.
_OPERANDS = 2


class MathOfTensor(Rule):
    """A function of Python's math module, `divmod` or `bisect` is given tensor data.

    ## What it does
    Finds `math.sqrt(t)`, `math.log(t.item())`, `math.isnan(t)` and the like, `divmod` of numbers and sizes that
    depend on data, and `bisect.bisect(edges, t.item())`.

    ## Why it matters
    The math module computes with numbers of Python, which tensor data has none of while tracing. torch has
    the same functions on tensors. The numbers that tracing has instead know `//` and `%`, but not `divmod`.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.html#pointwise-ops
    """

    code = "EXL402"
    name = "math-of-tensor"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = ("math.*", "builtins.divmod", "builtins.pow", *sorted(BISECTING))
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
        Example(
            bad="""
def forward(self, x):
    count = x[x > 0].shape[0]
    pairs, rest = divmod(count, 2)
    return x * pairs + rest
""",
            good="""
def forward(self, x):
    count = x[x > 0].shape[0]
    pairs, rest = (count // 2, count % 2)
    return x * pairs + rest
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        given = next((value for value in place.args if is_data(value)), None)
        if place.name == "builtins.divmod":
            if given is not None and not is_tensor(given):
                yield self.report(
                    place,
                    f"`{words(place.node)}` divides a number that depends on tensor data: tracing knows no `divmod` of "
                    "such. Write `a // b` and `a % b`.",
                )
            return
        if place.name == "builtins.pow":
            if given is not None and not is_tensor(given) and len(place.args) > _OPERANDS:
                yield self.report(
                    place,
                    f"`{words(place.node)}` takes the rest of a power that depends on tensor data: tracing knows no `pow` of three "
                    "numbers. Write `a ** b % c`.",
                )
            return
        if place.name in BISECTING:
            if given is not None:
                yield self.report(
                    place,
                    f"`{words(place.node)}` compares tensor data with one number after the other: torch.export cannot trace "
                    "it. Use torch.bucketize.",
                )
            return
        function = place.name.rpartition(".")[2]
        if given is None or function in ("prod", "fsum") or (function == "pow" and is_tensor(given)):
            return
        if function in _SYMBOLIC and not is_tensor(given):
            return
        if function == "pow":
            yield self.report(
                place,
                f"`{words(place.node)}` computes with a number of Python, which tensor data has none of while tracing. Write "
                "`a ** b`.",
                outcome=_STRICT_ONLY,
            )
            return
        yield self.report(
            place,
            f"`{words(place.node)}` computes with a number of Python, which tensor data has none of while "
            "tracing. "
            + (
                "Compare with the tolerance."
                if function == "isclose"
                else f"Use torch.{function} on the tensor."
            ),
            outcome=_NON_STRICT_ONLY if function in _SYMBOLIC_IN_STRICT and not is_tensor(given) else None,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if report.place.name == "builtins.divmod":
            return quotient_and_rest(report.place, context)
        if report.place.name == "builtins.pow":
            return Refusal("of a negative base or exponent `a ** b % c` may be another number")
        if report.place.name in BISECTING:
            return bucketized(report.place, context)
        if report.place.name == "math.isclose":
            return close_to_zero(report.place, context)
        return torch_for_math(report.place, context)
