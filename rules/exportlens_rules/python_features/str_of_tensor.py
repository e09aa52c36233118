"""`str(t)` and `repr(t)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Conversion, Place
from exportlens.outcome import BAKED, FAILS, Outcome
from exportlens.rewriting.checks.guards import log_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, words

_SPELLED = Outcome(FAILS, FAILS)


class StrOfTensor(Rule):
    """`str(...)` or `repr(...)` of a tensor.

    ## What it does
    Finds `str` and `repr` of tensors and of numbers read out of them, and `bin(n)`, `hex(n)`, `format(n, "04b")`.

    ## Why it matters
    Strict tracing fails, whatever is done with the text. Non-strict tracing freezes "FakeTensor(...)" into
    the program, and fails where the text is made of the digits of a number.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL304"
    name = "str-of-tensor"
    outcome = Outcome(FAILS, BAKED)
    places = (Conversion, Call)
    callees = ("builtins.str", "builtins.repr", "builtins.ascii")
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + len(str(x.sum()))
""",
            good="""
def forward(self, x):
    return x + x.dim()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return x + len(bin(x.sum().long().item()))
""",
            good="""
def forward(self, x):
    return x + torch.floor(torch.log2(x.sum().abs())) + 3
""",
            outcome=_SPELLED,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        value = place.argument(0, "object") if isinstance(place, Call) else None
        if isinstance(place, Conversion) and place.to == "str":
            value = place.value
        if not is_data(value):
            return
        spelled = _is_spelled(place)
        fails = (
            "tracing knows no digits of it"
            if spelled
            else "strict tracing fails, else the text is frozen at export"
        )
        yield self.report(
            place,
            f"`{words(place.node)}` makes text of tensor data: {fails}. Return the tensor and format it outside of the model.",
            outcome=_SPELLED if spelled else None,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        return log_not_while_compiling(report.place, context)


def _is_spelled(place: Place) -> bool:
    """Whether the text is the number's own: `bin(n)`, `format(n, "04b")`."""
    node = place.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    if node.func.id in ("bin", "hex", "oct", "chr"):
        return True
    return node.func.id == "format" and any(
        not (isinstance(each, ast.Constant) and each.value == "") for each in node.args[1:]
    )
