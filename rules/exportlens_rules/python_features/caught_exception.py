"""Exceptions that traced code raises and catches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.classes import class_attribute
from exportlens.inference.places import Caught, Place
from exportlens.inference.values import ClassValue, Function, Instance, Value
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.checks.caught_errors import arguments_set, chosen_by_branch, raised_by_statement
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class ExceptionOfOwnClass(Rule):
    """Traced code raises and catches an exception whose class calls `super().__init__`.

    ## What it does
    Finds `raise` of an exception of a class with an `__init__` of its own that calls `super().__init__(...)`, where the
    exception is certainly raised while tracing, and traced code catches it.

    ## Why it matters
    Strict tracing does not follow the constructor of a built-in exception. Non-strict mode runs it as Python does.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL334"
    name = "exception-of-own-class"
    outcome = Outcome(FAILS, OK)
    places = (Caught,)
    examples = (
        Example(
            bad="""
from torch import nn


class TooShort(ValueError):
    def __init__(self, size):
        super().__init__(f"{size} steps")
        self.size = size


class M(nn.Module):
    def forward(self, x):
        try:
            raise TooShort(3)
        except TooShort as error:
            return x * error.size
""",
            good="""
from torch import nn


class TooShort(ValueError):
    def __init__(self, size):
        self.args = (f"{size} steps",)
        self.size = size


class M(nn.Module):
    def forward(self, x):
        try:
            raise TooShort(3)
        except TooShort as error:
            return x * error.size
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Caught)
        if _constructor_of_builtin(place.error) is not None:
            yield self.report(
                place,
                f"`{words(place.node)}` is raised and caught while tracing, and its class calls `super().__init__`: strict "
                "tracing does not follow that. Set `self.args` there.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Caught)
        made = _constructor_of_builtin(report.place.error)
        return None if made is None else arguments_set(report.place, made, context)


class CaughtAssertion(Rule):
    """An `assert` that does not hold while tracing is caught.

    ## What it does
    Finds `assert` on what is known while tracing, false there, in a `try` of traced code that catches it.

    ## Why it matters
    Strict tracing gives up at an `assert` that does not hold, whoever catches it. A `raise` it follows.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL335"
    name = "caught-assertion"
    outcome = Outcome(FAILS, OK)
    places = (Caught,)
    examples = (
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = 1

    def forward(self, x):
        try:
            assert self.layers > 1, "one layer"
            return x * 2
        except AssertionError:
            return x + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = 1

    def forward(self, x):
        try:
            if not self.layers > 1:
                raise AssertionError("one layer")
            return x * 2
        except AssertionError:
            return x + 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Caught)
        if isinstance(place.node, ast.Assert):
            yield self.report(
                place,
                f"`assert {words(place.node.test)}` does not hold while tracing, and is caught: strict tracing gives up at it. "
                "Write `if` and `raise AssertionError`.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Caught)
        return raised_by_statement(report.place, context)


class CaughtException(Rule):
    """Traced code raises an exception of a class of its own, or raises one again, and catches it.

    ## What it does
    Finds `raise` of an exception of one's own class, and `raise` alone, where it certainly happens while tracing and a
    `try` of traced code catches it.

    ## Why it matters
    torch before 2.7 follows the built-in exceptions only, in strict mode.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL336"
    name = "caught-exception"
    outcome = Outcome(OK, OK, before={"2.7": (FAILS, OK)})
    places = (Caught,)
    examples = (
        Example(
            bad="""
from torch import nn


class TooShort(ValueError):
    pass


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 3

    def forward(self, x):
        try:
            if self.steps < 8:
                raise TooShort("few steps")
            x = x * self.steps
        except TooShort:
            x = x + 1
        return x
""",
            good="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 3

    def forward(self, x):
        if self.steps < 8:
            x = x + 1
        else:
            x = x * self.steps
        return x
""",
        ),
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        try:
            try:
                raise ValueError("few dimensions")
            except ValueError:
                raise
        except ValueError:
            x = x + 1
        return x
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Caught)
        if not isinstance(place.node, ast.Raise) or _constructor_of_builtin(place.error) is not None:
            return
        if place.node.exc is None or _own_class(place.error) is not None:
            yield self.report(
                place,
                f"`{words(place.node)}` is caught while tracing: torch before 2.7 follows only built-in exceptions in strict "
                "mode. Choose by `if`, or trace in non-strict mode.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Caught)
        return chosen_by_branch(report.place, context)


def _own_class(error: Value) -> ClassValue | None:
    cls = error.cls if isinstance(error, Instance) else error
    return cls if isinstance(cls, ClassValue) else None


def _constructor_of_builtin(error: Value) -> Function | None:
    """The `__init__` of the exception's own class that calls the one of a built-in exception; None where there is none."""
    cls = _own_class(error)
    made = class_attribute(cls, "__init__")[0] if cls is not None else None
    if not isinstance(made, Function):
        return None
    calls = [each.func for each in ast.walk(made.node) if isinstance(each, ast.Call)]
    inits = (each for each in calls if isinstance(each, ast.Attribute) and each.attr == "__init__")
    return made if any(True for _ in inits) else None
