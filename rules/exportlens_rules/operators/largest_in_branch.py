"""`max()` of sizes in functions that torch.cond and its kin trace."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Function, Sequence, Shape, TensorScalar, Unknown, Value, options
from exportlens.outcome import OK, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.numbers.python_numbers import largest_by_torch
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import assigned_names, own_statements, parameters
from exportlens_rules.reading import operators_around


class LargestInBranch(Rule):
    """`max()` of a size in a function that `torch.cond`, `while_loop`, `map` or `scan` traces.

    ## What it does
    Finds Python's `max()` of a size or of a float that is made from one, in a function that is handed to one of these
    operators and in what that function calls.

    ## Why it matters
    Non-strict tracing puts a function of its own in the place of `max()`. Where an operator traces that function in turn,
    it takes the smallest of the numbers, without a word.

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL712"
    name = "largest-in-branch"
    outcome = Outcome(OK, WRONG)
    places = (Call,)
    callees = ("builtins.max",)
    examples = (
        Example(
            bad="""
def forward(self, x):
    def scaled():
        return x / max(x.shape[1] - 1, 1)

    return torch.cond(x.sum() > -1e9, scaled, lambda: x.clone(), ())
""",
            good="""
def forward(self, x):
    def scaled():
        return x / torch.sym_max(x.shape[1] - 1, 1)

    return torch.cond(x.sum() > -1e9, scaled, lambda: x.clone(), ())
""",
        ),
        Example(
            bad="""
def forward(self, x):
    def spread(x):
        rows, columns = x.size()
        return x / max(rows, columns)

    return torch.cond(x.sum() > -1e9, spread, lambda x: x.clone(), (x,))
""",
            good="""
def forward(self, x):
    largest = max(x.size())
    return torch.cond(x.sum() > -1e9, lambda x: x / largest, lambda x: x.clone(), (x,))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call) and isinstance(place.node, ast.Call)
        around = operators_around(place)
        if around and _is_symbolic(place) and (around > 1 or not _is_from_outside(place)):
            yield self.report(
                place,
                "Non-strict tracing takes the smallest number here instead of the largest: use `torch.sym_max`, or compute it "
                "outside of the function that the operator traces.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return largest_by_torch(report.place, context)


def _is_symbolic(place: Call) -> bool:
    """Whether tracing may hold a number that is compared as a symbol."""
    assert isinstance(place.node, ast.Call)
    if any(map(_holds_symbols, place.args)):
        return True
    # Of an argument that may be anything, a size is one where it is a tensor: the function is traced with tensors.
    return any(isinstance(each, Unknown) for each in place.args) and any(
        _tells_sizes(each)
        for given in place.node.args
        for each in (given, *_values_of_names(given, place.site.function))
    )


def _holds_symbols(value: Value) -> bool:
    if isinstance(value, Sequence):
        return any(map(_holds_symbols, value.items or ()))
    return any(isinstance(each, (Shape, TensorScalar)) for each in options(value))


def _values_of_names(expression: ast.expr, function: Function | None) -> Iterator[ast.expr]:
    """What `function` binds the names of `expression` to."""
    names = {each.id for each in ast.walk(expression) if isinstance(each, ast.Name)}
    for node in own_statements(function) if function is not None else ():
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id in names
            for target in node.targets
            for each in ast.walk(target)
        ):
            yield node.value


def _tells_sizes(expression: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr in ("shape", "size", "numel")
        for each in ast.walk(expression)
    )


def _is_from_outside(place: Call) -> bool:
    """Whether the numbers were taken outside of the function that is traced, where they are plain ones."""
    function = place.site.function
    assert isinstance(place.node, ast.Call)
    if function is None or any(
        isinstance(each, (ast.Attribute, ast.Call)) for given in place.node.args for each in ast.walk(given)
    ):
        return False
    own = {*parameters(function), *assigned_names(function)}
    used = [each.id for each in ast.walk(place.node) if isinstance(each, ast.Name)]
    return own.isdisjoint(used)
