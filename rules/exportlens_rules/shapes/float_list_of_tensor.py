"""`tolist()` of a float tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Place
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.kinds.float_evidence import lists_floats
from exportlens.rewriting.lists.numbers_of_lists import numbers_one_by_one
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


def _is_of_floats(place: Conversion) -> bool:
    function = place.site.function
    return (
        function is not None and isinstance(place.node, ast.expr) and lists_floats(function.node, place.node)
    )


class FloatListOfTensor(Rule):
    """A tensor of floats or of truth values becomes a Python list.

    ## What it does
    Finds `tolist()` on floating-point and bool tensors. On integer tensors it is fine. Where
    nothing tells the dtype and the numbers are used as floats are, rounded or compared with `0.5`, it is a remark, with its fix.

    ## Why it matters
    Strict tracing supports `tolist()` for integers only.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.tolist.html
    """

    code = "EXL407"
    name = "list-of-float-tensor"
    outcome = Outcome(FAILS, OK)
    places = (Conversion,)
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return x + sum(x.float()[0].tolist())
""",
            good="""
def forward(self, x: torch.Tensor):
    return x + x.float()[0].sum()
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Conversion)
        if place.to != "list" or not all(
            isinstance(option, Tensor) and option.origin != "constant" for option in options(place.value)
        ):
            return
        dtypes = [getattr(option, "dtype", None) for option in options(place.value)]
        if all((dtype or "").startswith(("float", "bfloat", "bool")) for dtype in dtypes):
            yield self.report(
                place,
                f"`{words(place.node)}` lists a tensor that is not of integers: strict tracing supports those only. "
                "Compute on the "
                "tensor.",
            )

        elif set(dtypes) == {None} and _is_of_floats(place):
            yield self.report(
                place,
                f"`{words(place.node)}` lists a tensor whose numbers are used as floats: strict tracing supports lists of integers "
                "only. Compute on the tensor.",
                only_where="the tensor is one of floats",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Conversion)
        return numbers_one_by_one(report.place, context)
