"""What the branches of torch.cond return."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.inference.values import Function
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import (
    COND,
    assigned_names,
    branch_functions,
    is_operand,
    leaves,
    parameters,
    returned,
)
from exportlens_rules.reading import words


class BranchOutput(Rule):
    """A branch of `torch.cond` returns what torch.cond does not take.

    ## What it does
    Finds branches that return an operand as it is or a view of it, one tensor twice, None, a float or a
    string, and branches that return different numbers of outputs.

    ## Why it matters
    The outputs of both branches must be new tensors (or ints) of the same structure: the operator cannot
    return memory that it was given, nor the same memory twice.

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL702"
    name = "branch-output"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "what each branch shall give is for you to say: the same number of tensors in both, of the same dtype "
        "and number of dimensions"
    )
    places = (Call,)
    callees = COND
    examples = (
        Example(
            bad="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: x, lambda x: x - 1, (x,))
""",
            good="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: x.clone(), lambda x: x - 1, (x,))
""",
        ),
        Example(
            bad="""
def forward(self, x):
    def both(x):
        y = x + 1
        return y, y

    return torch.cond(x.sum() > 0, both, lambda x: (x - 1, x - 2), (x,))
""",
            good="""
def forward(self, x):
    def both(x):
        y = x + 1
        return y, y.clone()

    return torch.cond(x.sum() > 0, both, lambda x: (x - 1, x - 2), (x,))
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: (x + 1, None), lambda x: (x - 1, None), (x,))
""",
            good="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), None
""",
        ),
        Example(
            bad="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: (x + 1,), lambda x: (x - 1, x + 2), (x,))
""",
            good="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: (x + 1, x + 3), lambda x: (x - 1, x + 2), (x,))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        functions = list(branch_functions(place))
        for function in functions:
            for expression in returned(function):
                problem = _problem(function, expression)
                if problem:
                    yield self.report(place, f"A branch of torch.cond returns {problem}.")
                    return
        counts = [_count(function) for function in functions]
        if len(counts) == 2 and None not in counts and counts[0] != counts[1]:
            yield self.report(
                place,
                f"The branches of torch.cond return {counts[0]} and {counts[1]} outputs: they must agree.",
            )


def _problem(function: Function, expression: ast.expr) -> str:
    names = [name for name in parameters(function) if name not in assigned_names(function)]
    parts = leaves(expression)
    for part in parts:
        if is_operand(part, names):
            return f"its operand `{words(part)}` as it is: return `{words(part)}.clone()`"
        if isinstance(part, ast.Constant) and (part.value is None or isinstance(part.value, (float, str))):
            return f"{part.value!r}: only tensors and ints can be returned"
    plain = [part.id for part in parts if isinstance(part, ast.Name)]
    twice = next((name for name in plain if plain.count(name) > 1), None)
    return f"the tensor `{twice}` twice: clone one of them" if twice else ""


def _count(function: Function) -> int | None:
    """How many outputs the function returns, where every return is a tuple or list of one length."""
    lengths = {
        len(leaves(expression)) if isinstance(expression, (ast.Tuple, ast.List)) else None
        for expression in returned(function)
    }
    return lengths.pop() if len(lengths) == 1 else None
