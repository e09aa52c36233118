"""What the function of scan returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import SCAN, leaves, own_function, returned


class ScanResult(Rule):
    """The function of `scan` does not return a carry and a result.

    ## What it does
    Finds `torch._higher_order_ops.scan.scan` whose function returns one value, or the same tensor as carry
    and as result, and a start value that is a Python number.

    ## Why it matters
    `scan` expects `(carry, result)`, in memory of their own.

    ## References
    - https://docs.pytorch.org/docs/stable/higher_order_ops/index.html
    """

    code = "EXL710"
    name = "scan-result"
    outcome = Outcome(FAILS, FAILS)
    no_fix = "which of the results is the carry is for you to say: return `(carry, result)`"
    places = (Call,)
    callees = SCAN
    examples = (
        Example(
            bad="""
def forward(self, x):
    from torch._higher_order_ops.scan import scan

    def step(total, row):
        total = total + row
        return total, total

    return scan(step, torch.zeros(4), x)[1]
""",
            good="""
def forward(self, x):
    from torch._higher_order_ops.scan import scan

    def step(total, row):
        total = total + row
        return total, total.clone()

    return scan(step, torch.zeros(4), x)[1]
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if isinstance(place.argument(1, "init"), Const):
            yield self.report(place, "`scan` starts from a tensor, and got a number of Python.")
            return
        function = own_function(place.argument(0, "combine_fn"))
        for expression in returned(function) if function else []:
            names = [part.id for part in leaves(expression) if isinstance(part, ast.Name)]
            if isinstance(expression, (ast.BinOp, ast.UnaryOp)):
                yield self.report(place, "The function of `scan` returns one value: return (carry, result).")
                return
            if isinstance(expression, ast.Tuple) and len(names) != len(set(names)):
                yield self.report(
                    place,
                    "The function of `scan` returns one tensor as carry and as result: clone one of them.",
                )
                return
