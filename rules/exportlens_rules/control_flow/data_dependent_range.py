"""`range` over a number that tensor data decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Place
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.control_flow import rewrite_range
from exportlens.rewriting.loops.found_loops import rewrite_found
from exportlens.rewriting.numbers.products import product_for_tensor
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, words


class DataDependentRange(Rule):
    """A loop runs as often as tensor data says.

    ## What it does
    Finds `range(int(t))`, `range(t.item())`, `range(x[mask].shape[0])`, and lists that are repeated: `[0] * x[mask].shape[0]`.

    ## Why it matters
    Tracing unrolls loops; a number that only the data knows cannot be unrolled.

    ## References
    - https://docs.pytorch.org/docs/stable/higher_order_ops/index.html
    """

    code = "EXL112"
    name = "data-dependent-range"
    outcome = Outcome(FAILS, FAILS)
    places = (Conversion,)
    examples = (
        Example(
            bad="""
def forward(self, x, n):
    for _ in range(n.item()):
        x = x * 2
    return x
""",
            good="""
def forward(self, x, n):
    from torch._higher_order_ops import while_loop

    return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2), (torch.zeros_like(n), x))[1]
""",
            inputs="(torch.randn(3, 4), torch.tensor(3))",
        ),
        Example(
            bad="""
def forward(self, x):
    kept = x[x > 0]
    return kept * torch.tensor([2.0] * kept.shape[0])
""",
            good="""
def forward(self, x):
    kept = x[x > 0]
    return kept * torch.full((kept.shape[0],), 2.0)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Conversion)
        if place.to == "range" and isinstance(place.node, ast.Call) and is_data(place.value):
            yield self.report(
                place,
                f"`{words(place.node)}` runs as often as tensor data says: torch.export cannot unroll the "
                "loop. "
                "Rewrite with torch._higher_order_ops.while_loop.",
            )
        if place.to == "repeat" and is_data(place.value):
            yield self.report(
                place,
                f"`{words(place.node)}` repeats its items as often as tensor data says, and a list has as many as Python "
                "knows. Make a tensor of that size, as torch.full does.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Conversion)
        if report.place.to == "repeat":
            return Refusal("what the list is for decides which tensor takes its place")
        node = report.place.node
        counts = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
        if not counts:
            return rewrite_found(report.place, context)
        # Python knows the product of sizes, however it was computed.
        return product_for_tensor(report.place, context) or rewrite_range(report.place, context)
