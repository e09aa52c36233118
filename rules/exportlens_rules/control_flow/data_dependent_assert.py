"""`assert` on the value of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place, Truth
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.control_flow import rewrite_truth
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_tensor, subject

_WITH_MESSAGE = Outcome(FAILS, FAILS)


class DataDependentAssert(Rule):
    """An `assert` looks at a tensor.

    ## What it does
    Finds `assert` statements on tensors. Strict tracing turns them into checks of the program as long as the
    message is a plain string; non-strict tracing fails. Asserts on numbers (`t.item() > 0`) are kept by both.

    ## Why it matters
    Non-strict tracing runs the statement with a fake tensor that has no data, and stops there.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL104"
    name = "data-dependent-assert"
    outcome = Outcome(OK, FAILS)
    places = (Truth,)
    examples = (
        Example(
            bad="""
def forward(self, x):
    assert (x * x >= 0).all(), "negative"
    return x + 1
""",
            good="""
def forward(self, x):
    torch._assert_async((x * x >= 0).all(), "negative")
    return x + 1
""",
        ),
        Example(
            bad="""
def forward(self, x):
    assert (x * x >= 0).all(), f"negative in {tuple(x.shape)}"
    return x + 1
""",
            good="""
def forward(self, x):
    torch._assert_async((x * x >= 0).all(), "negative")
    return x + 1
""",
            outcome=_WITH_MESSAGE,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Truth)
        if place.context != "assert" or not is_tensor(place.value):
            return
        statement = place.statement
        assert isinstance(statement, ast.Assert)
        plain = (statement.msg is None or isinstance(statement.msg, ast.Constant)) and not isinstance(
            statement.test, (ast.BoolOp, ast.UnaryOp)
        )
        yield self.report(
            place,
            f"`assert` on {subject(place.value, place.node)}: torch.export cannot evaluate it while tracing. "
            "Use torch._assert_async(condition, message).",
            outcome=None if plain else _WITH_MESSAGE,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Truth)
        return rewrite_truth(report.place, context)
