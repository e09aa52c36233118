"""A loop over a tensor whose length depends on data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Conversion, Iteration, Place
from exportlens.inference.values import Tensor, Value, options
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, words


class DataDependentIteration(Rule):
    """A loop runs over the rows of a tensor that has as many rows as the data says.

    ## What it does
    Finds loops over `torch.nonzero(x)`, `torch.unique(x)`, `x[mask]` and the like, and `.tolist()` of them. Loops over tensors with a
    size that is known while tracing are unrolled and fine.

    ## Why it matters
    Tracing unrolls loops and needs to know how often they run.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.unique.html
    """

    code = "EXL113"
    name = "data-dependent-iteration"
    outcome = Outcome(FAILS, FAILS)
    places = (Conversion, Iteration)
    no_fix = (
        "how often the loop runs is only known when the model runs, and no operator of torch's takes a body with a "
        "number of rows from data: work on all rows at once, as `x[mask].sum()` does, or on every element with a mask "
        "as weight"
    )
    examples = (
        Example(
            bad="""
def forward(self, x):
    total = x.sum()
    for index in torch.nonzero(x > 0):
        total = total + x[index[0], index[1]]
    return total
""",
            good="""
def forward(self, x):
    return x.sum() + x[x > 0].sum()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    counts = torch.bincount((x > 0).long().flatten(), minlength=2).tolist()
    return x * counts[0]
""",
            good="""
def forward(self, x):
    counts = torch.bincount((x > 0).long().flatten(), minlength=2)[:2].tolist()
    return x * counts[0]
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, Conversion) and place.to == "list":
            if all(map(_rows_unknown, options(place.value))) and not _is_cut(place.node):
                yield self.report(
                    place,
                    f"`{words(place.node)}` makes a list whose length depends on tensor data: torch.export demands a number "
                    "of Python. Keep the tensor, or take as many of its elements as are known.",
                )
            return
        if isinstance(place, Conversion):
            found = place.to == "range" and not isinstance(place.node, ast.Call) and is_data(place.value)
        else:
            assert isinstance(place, Iteration)
            found = place.context in ("for", "comprehension") and all(
                map(_rows_unknown, options(place.iterable))
            )
        if found:
            yield self.report(
                place,
                f"A loop over `{words(place.node)}`, whose length depends on tensor data: torch.export "
                "cannot unroll it. "
                "Compute on the whole tensor at once.",
            )


def _is_cut(node: ast.AST) -> bool:
    """Whether a method is called on a slice: of a tensor that has more elements for certain, its length is known."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Subscript)
        and any(isinstance(part, ast.Slice) for part in ast.walk(node.func.value.slice))
    )


def _rows_unknown(value: Value) -> bool:
    """Whether the number of rows depends on data: of a list of values, or of indices as of `nonzero`."""
    if not isinstance(value, Tensor) or not value.unbacked or value.origin == "constant":
        return False
    return value.rank == 1 or (value.rank == 2 and value.dtype == "int64")
