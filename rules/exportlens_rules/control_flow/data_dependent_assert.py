"""`assert` on the value of a tensor, or on a number that was read out of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place, Truth
from exportlens.inference.values import Shape, TensorScalar, Value
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.control_flow import rewrite_truth
from exportlens.rule import Example, Report, Rule

from exportlens_rules.control_flow.decision import is_checked, is_declared_size, is_item_of_plain_attribute
from exportlens_rules.reading import is_data, is_tensor, numbers_in, promises_sizes, subject

_WITH_MESSAGE = Outcome(FAILS, FAILS)
_ONLY_STRICT = Outcome(FAILS, OK)


class DataDependentAssert(Rule):
    """An `assert` looks at a tensor.

    ## What it does
    Finds `assert` statements on tensors, and on numbers that were read out of tensors. Strict tracing turns them
    into checks of the program as long as the message is a plain string and the test is one comparison;
    non-strict tracing fails. One comparison of a number, without a message (`assert t.item() > 0`), exports in both: the
    program of non-strict tracing checks it, that of strict tracing does not.

    ## Why it matters
    Non-strict tracing runs the statement with a fake tensor that has no data, and stops there. It recognizes an
    `assert` by its bytecode, which is another one where there is a message, `and`, `or`, `not`, or a chain of
    comparisons.

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
        Example(
            bad="""
def forward(self, x):
    assert x.abs().max().item() < 1000, "too large"
    return x + 1
""",
            good="""
def forward(self, x):
    torch._assert_async(x.abs().max() < 1000, "too large")
    return x + 1
""",
        ),
        Example(
            bad="""
def forward(self, x):
    count = (x > 0).sum().item()
    assert 0 <= count < 1000
    return x + 1
""",
            good="""
def forward(self, x):
    count = (x > 0).sum().item()
    assert count >= 0
    assert count < 1000
    return x + 1
""",
            outcome=_WITH_MESSAGE,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Truth)
        if place.context != "assert":
            return
        statement = place.statement
        assert isinstance(statement, ast.Assert)
        if is_tensor(place.value):
            outcome = None if _is_plain(statement) and not _is_joined(statement.test) else _WITH_MESSAGE
        elif (
            not numbers_in(place.value)
            or is_declared_size(place.value)
            or _is_promised(place, statement.test)
        ):
            return
        else:
            asked = _is_asked_amid(place, statement.test)
            if _compares_tensors(statement.test):
                return  # the call itself fails, whatever is asked of its answer: another rule's subject
            if statement.msg is None and not asked and not _compares_tuples(statement.test):
                return
            plain = _is_plain(statement) and not asked
            known = is_item_of_plain_attribute(place)
            if plain and known:
                return
            outcome = None if plain else _ONLY_STRICT if known else _WITH_MESSAGE
        yield self.report(
            place,
            f"`assert` on {subject(place.value, place.node)}: torch.export cannot evaluate it while tracing. "
            "Use torch._assert_async(condition, message).",
            outcome=outcome,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Truth)
        return rewrite_truth(report.place, context)


def _is_plain(statement: ast.Assert) -> bool:
    """Whether there is no message but a text that stands there as such."""
    return statement.msg is None or isinstance(statement.msg, ast.Constant)


def _compares_tensors(test: ast.expr) -> bool:
    """Whether the test is a call of `torch.equal`, `torch.allclose` or `is_nonzero`, or its contrary."""
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    return (
        isinstance(test, ast.Call)
        and isinstance(test.func, ast.Attribute)
        and test.func.attr in ("equal", "allclose", "is_nonzero")
    )


def _compares_tuples(test: ast.expr) -> bool:
    """Whether tuples or lists are compared: non-strict tracing asks each pair of their items for its truth before the jump."""
    return isinstance(test, ast.Compare) and any(
        isinstance(side, (ast.Tuple, ast.List)) for side in (test.left, *test.comparators)
    )


def _is_joined(test: ast.expr) -> bool:
    return isinstance(test, (ast.BoolOp, ast.UnaryOp))


def _is_asked_amid(place: Truth, test: ast.expr) -> bool:
    """Whether Python asks a number for its truth before the assertion's own jump."""
    if isinstance(test, ast.BoolOp):
        return any(_reads_data(operand, place.variables) for operand in test.values[:-1]) or _is_asked_amid(
            place, test.values[-1]
        )
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not)
    return isinstance(test, ast.Compare) and len(test.ops) > 1


def _reads_data(test: ast.expr, variables: Mapping[str, Value]) -> bool:
    return any(
        (isinstance(node, ast.Name) and is_data(variables.get(node.id)))
        or (isinstance(node, ast.Attribute) and node.attr == "item")
        for node in ast.walk(test)
    )


def _is_promised(place: Truth, test: ast.expr) -> bool:
    """Whether torch may know the answer: of a number that `torch._check` bounds, of a size by the bounds that all have."""
    if is_checked(place):
        return True
    if not isinstance(place.value, Shape):
        return not isinstance(place.value, TensorScalar)
    if not isinstance(test, ast.Compare) or len(test.ops) > 1 or promises_sizes(place):
        return True
    bound = test.comparators[0]
    if not isinstance(bound, ast.Constant) or not isinstance(bound.value, int):
        return True
    least = 1 if isinstance(test.ops[0], ast.GtE) else 0
    return not isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.Eq, ast.NotEq)) or bound.value < least
