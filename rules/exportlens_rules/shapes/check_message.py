"""Messages of `torch._check` that strict tracing cannot keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const, Function, Instance, Shape, Tensor, TensorScalar, Value
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.old_calls import message_for_check
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_data, words


class CheckMessage(Rule):
    """The message of `torch._check` is one that strict tracing cannot keep.

    ## What it does
    Finds `torch._check(condition, "text")`; messages such as `lambda: f"... {n}"` where `n` is a tensor, was read out
    of one, or is the model itself; and any message of a condition that comes from tensor data.

    ## Why it matters
    Strict tracing takes the message apart while tracing: it must be a function whose free names are constants, and even
    that one fails where the condition is kept in the program.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch._check.html
    """

    code = "EXL430"
    name = "check-message"
    outcome = Outcome(FAILS, OK)
    places = (Call,)
    callees = tuple(
        f"torch._check{kind}" for kind in ("", "_index", "_is_size", "_not_implemented", "_type", "_value")
    )
    examples = (
        Example(
            bad="""
def forward(self, x, count):
    n = count.item()
    torch._check(n >= 0, lambda: f"negative: {n}")
    return x * n
""",
            good="""
def forward(self, x, count):
    n = count.item()
    torch._check(n >= 0)
    return x * n
""",
            inputs="(torch.randn(3, 4), torch.tensor(2))",
        ),
        Example(
            bad="""
def forward(self, x):
    torch._check(x.shape[0] > 1, "too small")
    return x + 1
""",
            good="""
def forward(self, x):
    torch._check(x.shape[0] > 1, lambda: "too small")
    return x + 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        message = place.argument(1, "message")
        if isinstance(message, Const) and isinstance(message.value, str):
            yield self.report(
                place,
                f"`{words(place.node)}`: strict tracing takes a function for the message, not a text. Write "
                f"`lambda: {message.value!r}`.",
            )
        elif isinstance(message, Function):
            name = next((name for name, value in _free(message) if _no_constant(value)), None)
            if name is not None:
                yield self.report(
                    place,
                    f"The message of `{words(place.node)}` looks at `{name}`, which is no constant: strict tracing "
                    "fails. Leave it out of the message.",
                )
            elif is_data(place.argument(0, "cond")):
                yield self.report(
                    place,
                    f"`{words(place.node)}` has a message, and its condition comes from tensor data: strict tracing "
                    "fails. Leave the message out.",
                )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return message_for_check(report.place, context, is_data(report.place.argument(0, "cond")))


def _free(function: Function) -> Iterator[tuple[str, Value]]:
    """The free names of a function that its enclosing function binds, with their values."""
    arguments = function.node.args
    own = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    known = getattr(function.closure, "locals", {})
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name) and node.id not in own and node.id in known:
            yield node.id, known[node.id]


def _no_constant(value: Value) -> bool:
    return isinstance(value, (Tensor, TensorScalar, Instance)) or (
        isinstance(value, Shape) and value.unbacked
    )
