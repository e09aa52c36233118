"""Lists, ModuleLists and dicts indexed by tensor data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Place
from exportlens.inference.values import Shape, Tensor, options
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.branches.chosen_items import choose_among_items
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, words


class DataDependentIndex(Rule):
    """Tensor data chooses an item of a Python list or dict.

    ## What it does
    Finds `layers[t.argmax()]`, `table[t.item()]` and dict keys that come from tensor data.

    ## Why it matters
    Which Python object to take is decided while tracing, when the data is not there. A tensor can be indexed
    by data: stack the items, or use an embedding.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.index_select.html
    """

    code = "EXL403"
    name = "data-dependent-index"
    outcome = Outcome(FAILS, FAILS)
    places = (Conversion,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    scales = [1.0, 2.0, 3.0, 4.0]
    return x * scales[x.sum(0).argmax()]
""",
            good="""
def forward(self, x):
    scales = torch.tensor([1.0, 2.0, 3.0, 4.0])
    return x * torch.index_select(scales, 0, x.sum(0).argmax().reshape(1))
""",
        ),
        Example(
            bad="""
def forward(self, x):
    scales = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    return x * scales[x.sum(0).argmax().item()]
""",
            good="""
def forward(self, x):
    scales = torch.tensor([1.0, 2.0, 3.0, 4.0])
    return x * torch.index_select(scales, 0, x.sum(0).argmax().reshape(1))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Conversion)
        if place.to not in ("index", "key") or not is_data(place.value) or _is_slice(place.node):
            return
        if place.to == "index" and all(isinstance(option, Shape) for option in options(place.value)):
            return
        if place.to == "key" and any(isinstance(option, Tensor) for option in options(place.value)):
            # A tensor is a key by its identity, which tracing knows.
            return
        kind = (
            "Python dict" if place.to == "key" else "NumPy array" if place.use == "array" else "Python list"
        )
        yield self.report(
            place,
            f"`{words(place.node)}`: tensor data chooses an item of a {kind}, which torch.export "
            "cannot do. "
            "Stack the items into a tensor and index that.",
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Conversion)
        return choose_among_items(report.place, context)


def _is_slice(node: ast.AST) -> bool:
    return isinstance(node, ast.Slice) or (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
    )
