"""What the body of while_loop carries on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.inference.values import Sequence
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import (
    WHILE_LOOP,
    assigned_names,
    is_operand,
    leaves,
    own_function,
    parameters,
    returned,
)
from exportlens_rules.reading import is_tensor, words


class WhileLoopCarry(Rule):
    """The body of `while_loop` does not return what it carries.

    ## What it does
    Finds bodies that return a carried tensor unchanged or another number of values than is carried, and loops
    whose carried values are a tensor instead of a tuple.

    ## Why it matters
    Each round gets what the last one returned: as many values, of the same shapes and dtypes, in new memory.

    ## References
    - https://docs.pytorch.org/docs/stable/higher_order_ops/index.html
    """

    code = "EXL704"
    name = "while-loop-carry"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "what is carried is for you to say: return as many tensors as the body takes, of the same shapes and "
        "dtypes"
    )
    places = (Call,)
    callees = WHILE_LOOP
    examples = (
        Example(
            bad="""
def forward(self, x):
    from torch._higher_order_ops import while_loop

    i = torch.tensor(0)
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), (i, x))[1]
""",
            good="""
def forward(self, x):
    from torch._higher_order_ops import while_loop

    i = torch.tensor(0)
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.clone()), (i, x))[1]
""",
        ),
        Example(
            bad="""
def forward(self, x):
    from torch._higher_order_ops import while_loop

    i = torch.tensor(0)
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1,), (i, x))[0]
""",
            good="""
def forward(self, x):
    from torch._higher_order_ops import while_loop

    i = torch.tensor(0)
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))[0]
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        carried = place.argument(2, "carried_inputs")
        if is_tensor(carried):
            yield self.report(
                place, "`while_loop` carries a tuple of tensors, and got a tensor; write (tensor,)."
            )
            return
        body = own_function(place.argument(1, "body_fn"))
        if body is None:
            return
        names = [name for name in parameters(body) if name not in assigned_names(body)]
        for expression in returned(body):
            same = next((part for part in leaves(expression) if is_operand(part, names)), None)
            if same is not None:
                yield self.report(
                    place,
                    f"The body of `while_loop` returns `{words(same)}` as it came in: return "
                    f"`{words(same)}.clone()`.",
                )
                return
            count = (
                len(carried.items) if isinstance(carried, Sequence) and carried.items is not None else None
            )
            if isinstance(expression, (ast.Tuple, ast.List)) and count not in (None, len(expression.elts)):
                yield self.report(
                    place,
                    f"The body of `while_loop` returns {len(expression.elts)} values, and {count} are "
                    "carried.",
                )
                return
