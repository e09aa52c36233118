"""`t.T` beside `t` in functions that torch.cond and its kin trace."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeRead, Place
from exportlens.inference.values import Tensor
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.memory.transposed import METHODS, transposed_by_method
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import own_statements
from exportlens_rules.reading import operators_around, words

_FROM_OUTSIDE = frozenset({"input", "parameter", "buffer", "attribute"})


class ViewAttributeInBranch(Rule):
    """`t.T` beside `t`, of a tensor from outside, in a function that `torch.cond`, `while_loop`, `map` or `scan` traces.

    ## What it does
    Finds the attributes `T` and `mT` of inputs, parameters and buffers in a function that is handed to one of these
    operators, or that such a function calls, where it uses the tensor itself as well.

    ## Why it matters
    The operator takes what is read of a tensor from outside as another tensor of the same memory, which it refuses. What
    a method gives is made inside.

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL713"
    name = "view-attribute-in-branch"
    outcome = Outcome(FAILS, FAILS)
    places = (AttributeRead,)
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    def gram():
        return x.T @ x

    return torch.cond(x.sum() > 0, gram, lambda: torch.zeros(4, 4), ())
""",
            good="""
def forward(self, x: torch.Tensor):
    def gram():
        return x.t() @ x

    return torch.cond(x.sum() > 0, gram, lambda: torch.zeros(4, 4), ())
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeRead)
        if (
            place.attr in METHODS
            and isinstance(place.owner, Tensor)
            and place.owner.origin in _FROM_OUTSIDE
            and operators_around(place)
            and _is_used_beside(place)
        ):
            yield self.report(
                place,
                f"`{words(place.node)}` is another tensor of the same memory to the operator that traces this function: use "
                f"`{METHODS[place.attr]}`.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, AttributeRead)
        return transposed_by_method(report.place, context)


def _is_used_beside(place: AttributeRead) -> bool:
    """Whether the function uses the tensor as it is, too."""
    function, path = place.site.function, dotted(getattr(place.node, "value", place.node))
    if function is None or path is None:
        return False
    nodes = list(own_statements(function))
    owners = {id(each.value) for each in nodes if isinstance(each, ast.Attribute)}
    return any(
        isinstance(each, (ast.Name, ast.Attribute)) and id(each) not in owners and dotted(each) == path
        for each in nodes
    )
