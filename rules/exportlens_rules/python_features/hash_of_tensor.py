"""`hash(t)`, and sets of numbers from data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Conversion, Place
from exportlens.outcome import BAKED, FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.decisions.number_sets import without_set
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_tensor, words

_SET = Outcome(FAILS, FAILS)


class HashOfTensor(CallOf):
    """A tensor is hashed.

    ## What it does
    Finds `hash(...)` of traced tensors, and sets and counters of numbers that were read out of tensors.

    ## Why it matters
    The hash of a tensor is its identity: strict tracing fails, non-strict tracing freezes the number. Numbers
    from data are symbols while tracing, and which of them are equal only the running model knows.

    ## References
    - https://docs.python.org/3/library/functions.html#hash
    """

    code = "EXL302"
    name = "hash-of-tensor"
    outcome = Outcome(FAILS, BAKED)
    places = (Call, Conversion)
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
        Example(
            bad="""
def forward(self, x):
    return x / len(set(x.long().flatten().tolist()))
""",
            good="""
def forward(self, x):
    return x / torch.unique(x.long()).shape[0]
""",
            outcome=_SET,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, Conversion):
            if place.to == "set":
                counts = isinstance(place.node, ast.Call) and ast.unparse(place.node.func).endswith("Counter")
                done = (
                    "counts how often there is each number of tensor data"
                    if counts
                    else "puts numbers from tensor data into a set"
                )
                yield self.report(
                    place,
                    f"`{words(place.node)}` {done}: tracing cannot tell which are equal. Use "
                    f"{'torch.bincount or torch.unique' if counts else 'torch.unique'}.",
                    outcome=_SET,
                )
        else:
            yield from super().check(place)

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        if isinstance(report.place, Conversion):
            return without_set(report.place, context)
        return Refusal(
            "what the tensor stands for as a key is not provable: use a Python value as key, or compare by `==` with torch"
        )

    def applies(self, place: Call) -> bool:
        return is_tensor(place.argument(0, "object"))
