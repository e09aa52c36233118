"""`isinstance(x, Variable)`."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Named, Sequence, Value
from exportlens.outcome import OK, WRONG, Outcome
from exportlens.rewriting.calls.data_attribute import tensor_for_variable
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_tensor, words

_VARIABLE = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})


class IsinstanceOfVariable(Rule):
    """A tensor is tested for being a `Variable`.

    ## What it does
    Finds `isinstance(x, torch.autograd.Variable)`.

    ## Why it matters
    In eager every tensor is a Variable. Strict tracing says no, takes the other branch, and exports a
    program that computes something else, without any error.

    ## References
    - https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated
    """

    code = "EXL316"
    name = "isinstance-of-variable"
    outcome = Outcome(WRONG, OK)
    places = (Call,)
    callees = ("builtins.isinstance",)
    examples = (
        Example(
            bad="""
from torch import nn
from torch.autograd import Variable


class M(nn.Module):
    def forward(self, x):
        if isinstance(x, Variable):
            return x + 1
        return x - 1
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        if isinstance(x, torch.Tensor):
            return x + 1
        return x - 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if len(place.args) == 2 and is_tensor(place.args[0]) and _is_variable(place.args[1]):
            yield self.report(
                place,
                f"`{words(place.node)}` is true in eager and false in strict tracing: the program takes "
                "the other "
                "branch. Test for torch.Tensor.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, Call)
        return tensor_for_variable(report.place, context)


def _is_variable(value: Value) -> bool:
    if isinstance(value, Sequence) and value.items is not None:
        names = {item.name for item in value.items if isinstance(item, Named)}
        return bool(names & _VARIABLE) and "torch.Tensor" not in names
    return isinstance(value, Named) and value.name in _VARIABLE
