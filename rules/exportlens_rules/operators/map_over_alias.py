"""torch's map over a tensor and a view of it."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import MAP, is_operand, leaves, own_function, parameters, returned
from exportlens_rules.reading import words


class MapOverAlias(Rule):
    """The function of `map` returns its row as it is, or takes a Python number.

    ## What it does
    Finds `torch._higher_order_ops.map.map` whose function returns its argument unchanged, or whose further
    arguments are numbers of Python.

    ## Why it matters
    The results of `map` must be new tensors, and its arguments tensors.

    ## References
    - https://docs.pytorch.org/docs/stable/higher_order_ops/index.html
    """

    code = "EXL709"
    name = "map-operands"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "what `map` shall give is for you to say: return `row.clone()`, and hand numbers in through a closure"
    )
    places = (Call,)
    callees = MAP
    examples = (
        Example(
            bad="""
def forward(self, x):
    from torch._higher_order_ops.map import map

    return map(lambda row: row, x)
""",
            good="""
def forward(self, x):
    from torch._higher_order_ops.map import map

    return map(lambda row: row.clone(), x)
""",
        ),
        Example(
            bad="""
def forward(self, x):
    from torch._higher_order_ops.map import map

    return map(lambda row, k: row + k, x, 2.0)
""",
            good="""
def forward(self, x):
    from torch._higher_order_ops.map import map

    return map(lambda row: row + 2.0, x)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        function = own_function(place.argument(0, "f"))
        if function is not None:
            for expression in returned(function):
                same = next(
                    (part for part in leaves(expression) if is_operand(part, parameters(function))), None
                )
                if same is not None:
                    yield self.report(
                        place,
                        f"The function of `map` returns `{words(same)}` as it came in: return a clone of it.",
                    )
                    return
        if any(isinstance(value, Const) for value in place.args[1:]):
            yield self.report(place, "`map` takes tensors: use numbers of Python inside of its function.")
