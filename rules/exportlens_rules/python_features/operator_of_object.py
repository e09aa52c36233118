"""`a @ b` and `~a` of objects that are no tensors, and operators between such an object and a tensor."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ObjectOperator, Place
from exportlens.inference.values import Instance, Tensor, options
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.object_operators import called_by_name
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words

_UNTRACED = frozenset({"__matmul__", "__rmatmul__", "__imatmul__", "__invert__"})


class OperatorOfObject(Rule):
    """An operator that a class of your own defines is used in a way that strict tracing does not know.

    ## What it does
    Finds `a @ b` and `~a` where the class of an object defines them, and any operator between such an object and a tensor:
    `pose * t`, `t + pose`, `pose -= t`. Modules and dataclasses count as well. `a + b`, `a * 2` and `-a` are traced.

    ## Why it matters
    Strict tracing takes `@` and `~` for those of tensors, and what is beside a tensor for something that can be put
    into the graph: "Failed to trace builtin operator `matmul`", "Missing `as_proxy()` implementation". Calls of the
    methods behind the operators are traced in both modes.

    ## References
    - https://docs.python.org/3/reference/datamodel.html#emulating-numeric-types
    """

    code = "EXL343"
    name = "operator-of-object"
    outcome = Outcome(FAILS, OK)
    places = (ObjectOperator,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class Scale:
    def __init__(self, matrix):
        self.matrix = matrix

    def __matmul__(self, other):
        return Scale(self.matrix @ other.matrix)


class M(nn.Module):
    def forward(self, x):
        return (Scale(x) @ Scale(x.t())).matrix
""",
            good="""
import torch
from torch import nn


class Scale:
    def __init__(self, matrix):
        self.matrix = matrix

    def compose(self, other):
        return Scale(self.matrix @ other.matrix)


class M(nn.Module):
    def forward(self, x):
        return Scale(x).compose(Scale(x.t())).matrix
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class Shift:
    def __init__(self, by):
        self.by = by

    def __rmul__(self, points):
        return points + self.by


class M(nn.Module):
    def forward(self, x):
        return x * Shift(1.0)
""",
            good="""
import torch
from torch import nn


class Shift:
    def __init__(self, by):
        self.by = by

    def __rmul__(self, points):
        return points + self.by


class M(nn.Module):
    def forward(self, x):
        return Shift(1.0).__rmul__(x)
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class Turn:
    def __init__(self, angle):
        self.angle = angle

    def __invert__(self):
        return Turn(-self.angle)


class M(nn.Module):
    def forward(self, x):
        return (~Turn(x)).angle
""",
            good="""
import torch
from torch import nn


class Turn:
    def __init__(self, angle):
        self.angle = angle

    def __neg__(self):
        return Turn(-self.angle)


class M(nn.Module):
    def forward(self, x):
        return (-Turn(x)).angle
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, ObjectOperator)
        beside = place.other is not None and all(isinstance(each, Tensor) for each in options(place.other))
        if not beside and place.method not in _UNTRACED:
            return
        owner = place.owner
        assert isinstance(owner, Instance)
        name = getattr(owner.cls, "name", "?")
        what = (
            f"uses an operator of `{name}` beside a tensor"
            if beside
            else f"uses `{place.method}` of `{name}` as an operator"
        )
        yield self.report(
            place, f"`{words(place.node)}` {what}: strict tracing fails. Call `{place.method}` by name."
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, ObjectOperator)
        return called_by_name(report.place, context)
