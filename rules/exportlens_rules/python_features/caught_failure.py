"""Operators and divisions whose failure on some data is caught."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Division, ItemRead, Place
from exportlens.inference.values import Const, Sequence, Tensor, Value
from exportlens.outcome import WRONG, Outcome
from exportlens.rewriting.checks.failing_operators import (
    TELLING,
    asked_for_success,
    asked_for_zero,
    catches_division,
    catches_failure,
    catches_missing_item,
)
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.liveness import exits
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import ancestors, is_tensor, words


class CaughtFailure(Rule):
    """The failure of an operator on data is caught, and another way is taken.

    ## What it does
    Finds `torch.linalg.cholesky`, `inv` and `solve` (and their older names) on tensors, divisions of numbers by one that was
    read out of a tensor, and items such as `t.nonzero()[0]` of what may be empty, in a `try` whose handler goes on otherwise.

    ## Why it matters
    Tracing has no data, so nothing fails and the handler is not part of the program: it raises where the model goes on.
    `torch.linalg.cholesky_ex` and the like tell of the failure in a tensor, which torch.cond can ask.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.linalg.cholesky_ex.html
    """

    code = "EXL341"
    name = "caught-failure"
    outcome = Outcome(WRONG, WRONG)
    places = (Call, Division, ItemRead)
    callees = tuple(TELLING)
    decided_here = False
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    try:
        factor = torch.linalg.cholesky(x)
    except RuntimeError:
        factor = torch.eye(2) * x.abs().max()
    return factor
""",
            good="""
def forward(self, x: torch.Tensor):
    factor, info = torch.linalg.cholesky_ex(x)
    return torch.cond(
        (info != 0).any(),
        lambda x, factor: torch.eye(2) * x.abs().max(),
        lambda x, factor: factor.clone(memory_format=torch.contiguous_format),
        (x, factor),
    )
""",
            inputs="(torch.ones(2, 2),)",
        ),
        Example(
            bad="""
def forward(self, x):
    try:
        part = 1 / x.clamp(min=0).sum().item()
    except ZeroDivisionError:
        part = 0.0
    return x * part
""",
            good="""
def forward(self, x):
    total = x.clamp(min=0).sum()
    return torch.where(total == 0, 0.0, x / total)
""",
            inputs="(torch.ones(2, 2),)",
        ),
        Example(
            bad="""
def forward(self, x):
    try:
        first = (x > 0).flatten().nonzero()[0]
    except IndexError:
        first = torch.tensor([-1])
    return x, first
""",
            good="""
def forward(self, x):
    found = (x > 0).flatten()
    return x, torch.where(found.any(), found.int().argmax(), -1).reshape(1)
""",
            inputs="(torch.ones(2, 2),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, ItemRead):
            if _may_be_missing(place.owner, place.key) and _attempt(place, catches_missing_item) is not None:
                yield self.report(
                    place,
                    f"`{words(place.node)}` fails where tensor data leaves no such item, which its `except` handles: tracing sees no "
                    "failure, so the program raises there. Ask for the number of items with `if`.",
                )
            return
        if isinstance(place, Division):
            if _attempt(place, catches_division) is not None:
                yield self.report(
                    place,
                    f"`{words(place.node)}` divides by a number of tensor data, and its `except` handles zero: tracing has no data, so "
                    "the handler is no part of the program, which raises there. Ask for zero with `if`.",
                )
            return
        assert isinstance(place, Call)
        given = place.receiver if place.name.startswith("torch.Tensor.") else place.argument(0, "A")
        if not is_tensor(given) or _attempt(place) is None:
            return
        yield self.report(
            place,
            f"`{words(place.node)}` fails on some data, which its `except` handles: tracing sees no failure, so the program "
            f"raises there. Ask `torch.linalg.{TELLING[place.name][0]}` for it.",
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        if isinstance(report.place, ItemRead):
            return Refusal(
                "what else in the `try` may fail, and how many items there are, is not provable here"
            )
        if isinstance(report.place, Division):
            attempt = _attempt(report.place, catches_division)
            return None if attempt is None else asked_for_zero(report.place, attempt, context)
        assert isinstance(report.place, Call)
        attempt = _attempt(report.place)
        return (
            None if attempt is None else asked_for_success(report.place, report.place.name, attempt, context)
        )


def _may_be_missing(owner: Value, key: Value) -> bool:
    """Whether tensor data decides if `owner` has an item at the number `key`, or at the first of several."""
    if isinstance(key, Sequence) and key.kind == "tuple" and key.items:
        key = key.items[0]
    return (
        isinstance(owner, Tensor)
        and owner.unbacked
        and (owner.open_dim == 0 or owner.rank == 1)
        and isinstance(key, Const)
        and type(key.value) is int
    )


def _attempt(place: Place, catches: Callable[[ast.ExceptHandler], bool] = catches_failure) -> ast.Try | None:
    """The `try` of the same function in whose body the place stands, if a handler catches its failure and goes on."""
    inner: ast.AST = place.node
    for each in ancestors(place):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        if isinstance(each, ast.Try) and inner in each.body:
            caught = next((one for one in each.handlers if catches(one)), None)
            if caught is not None:
                return each if exits(caught.body) != {"raises"} else None
        inner = each
    return None
