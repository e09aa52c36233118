"""Side effects in the functions given to control-flow operators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.inference.values import Function
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import (
    COND,
    WHILE_LOOP,
    branch_functions,
    in_place_writes,
    own_function,
    own_statements,
    parameters,
)
from exportlens_rules.reading import words


class BranchSideEffect(Rule):
    """A branch of `torch.cond`, or a body of `while_loop`, changes something outside of it.

    ## What it does
    Finds branches that write to an operand in place, set an attribute of `self`, use `nonlocal`, or raise.

    ## Why it matters
    A branch becomes a graph of its own that maps operands to outputs. What it changes besides is lost, so
    tracing refuses it.

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL703"
    name = "branch-side-effect"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "in which order the change shall happen is not provable: return the new value from both branches, and "
        "write it afterwards"
    )
    places = (Call,)
    callees = (*COND, *WHILE_LOOP)
    examples = (
        Example(
            bad="""
def forward(self, x):
    def add(x):
        x.add_(1)
        return x * 2

    return torch.cond(x.sum() > 0, add, lambda x: x - 1, (x,))
""",
            good="""
def forward(self, x):
    def add(x):
        return (x + 1) * 2

    return torch.cond(x.sum() > 0, add, lambda x: x - 1, (x,))
""",
        ),
        Example(
            bad="""
def forward(self, x):
    def fail(x):
        raise ValueError("negative")

    return torch.cond(x.sum() < -1e9, fail, lambda x: x - 1, (x,))
""",
            good="""
def forward(self, x):
    torch._assert_async(x.sum() >= -1e9, "negative")
    return x - 1
""",
        ),
        Example(
            bad="""
def forward(self, x):
    def remember(x):
        self.last = x
        return x + 1

    return torch.cond(x.sum() > 0, remember, lambda x: x - 1, (x,))
""",
            good="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        functions = [*branch_functions(place)]
        if place.name in WHILE_LOOP:
            body = own_function(place.argument(1, "body_fn"))
            functions = [body] if body else []
        for function in functions:
            problem = _problem(function)
            if problem:
                operator = place.name.rpartition(".")[2]
                yield self.report(
                    place, f"A function given to {operator} {problem}: it may only map operands to outputs."
                )
                return


def _raises_anyway(function: Function) -> bool:
    """Whether the function raises whatever is asked before: tracing answers what the configuration is asked for."""
    for node in function.node.body if isinstance(function.node, ast.FunctionDef) else []:
        if isinstance(node, ast.Raise):
            return True
        if any(isinstance(each, ast.Return) for each in ast.walk(node)):
            return False
    return False


def _problem(function: Function) -> str:
    write = next(in_place_writes(function, parameters(function)), None)
    if write is not None:
        return f"writes to its operand in place (`{words(write)}`)"
    if _raises_anyway(function):
        return "raises"
    for node in own_statements(function):
        if isinstance(node, (ast.Nonlocal, ast.Global)):
            return f"changes the outer name `{node.names[0]}`"
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == "self"
                ):
                    return f"sets `{words(target)}`"
    return ""
