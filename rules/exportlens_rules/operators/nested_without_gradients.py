"""torch.cond and while_loop in one another where gradients are switched off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.arms.gradients import is_no_grad
from exportlens.rewriting.calls.eager_contexts import entered_in_eager_alone
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule
from exportlens.source.document import Chunk

from exportlens_rules.operators.branches import COND, WHILE_LOOP
from exportlens_rules.reading import nodes_around, operator_name


class NestedWithoutGradients(Rule):
    """`torch.cond` or `while_loop` inside of another one, both under `torch.no_grad()`.

    ## What it does
    Finds `torch.cond` and `while_loop` in a function that another one of them traces, where `torch.no_grad()` or
    `torch.set_grad_enabled(False)` is in force around the outer one, as a block or a decorator, also further up in the calls.

    ## Why it matters
    torch.export makes a graph of its own of what runs without gradients, and loses the graphs that the inner operator needs: "has no
    attribute 'true_graph_0'". A single operator is fine, and so is `no_grad` inside of what the outer one traces.

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL714"
    name = "nested-without-gradients"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = (*COND, *WHILE_LOOP)
    examples = (
        Example(
            bad="""
def forward(self, x):
    def larger():
        return torch.cond(x.mean() > 1, lambda: x * 2, lambda: x + 1, ())

    with torch.no_grad():
        y = torch.cond(x.sum() > 0, larger, lambda: x.clone(), ())
    return y
""",
            good="""
def forward(self, x):
    def larger():
        return torch.cond(x.mean() > 1, lambda: x * 2, lambda: x + 1, ())

    y = torch.cond(x.sum() > 0, larger, lambda: x.clone(), ())
    return y.detach()
""",
        ),
        Example(
            bad="""
import torch
from torch import nn
from torch._higher_order_ops import while_loop


class M(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        def body(y):
            return (torch.cond(y.mean() > 1, lambda: y * 2, lambda: y + 1, ()),)

        return while_loop(lambda y: y.sum() < 30, body, (x.abs() + 1,))
""",
            good="""
import torch
from torch import nn
from torch._higher_order_ops import while_loop


class M(nn.Module):
    def forward(self, x):
        def body(y):
            return (torch.cond(y.mean() > 1, lambda: y * 2, lambda: y + 1, ()),)

        return while_loop(lambda y: y.sum() < 30, body, (x.abs() + 1,))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        if place.site.gradients:
            return
        found = _switch_around(place)
        if found is not None:
            yield self.report(
                place,
                f"`{place.name.rpartition('.')[2]}` in what another operator of control flow traces, where gradients are switched off: "
                "torch.export fails. Switch them off where the model is called, or inside of what the outer one traces.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        found = _switch_around(report.place)
        if found is None:
            return Refusal("what switches gradients off is not found")
        return entered_in_eager_alone(*found, context)


def _switch_around(place: Call) -> tuple[Chunk, ast.With | ast.FunctionDef] | None:
    """What switches gradients off around the outermost operator that leads to the place, and its chunk."""
    trail = [(chunk, node) for _, chunk, node in place.site.trail]
    names = ("cond", "while_loop")
    outermost = next((at for at, (_, node) in enumerate(trail) if operator_name(node) in names), None)
    if outermost is None:
        return None
    for chunk, node in reversed(trail[: outermost + 1]):
        for around in nodes_around(chunk, node):
            contexts: list[ast.expr] = []
            if isinstance(around, ast.With):
                contexts = [item.context_expr for item in around.items]
            elif isinstance(around, ast.FunctionDef):
                contexts = around.decorator_list
            if any(map(is_no_grad, contexts)) and isinstance(around, (ast.With, ast.FunctionDef)):
                return chunk, around
            if any(operator_name(each) == "enable_grad" for each in contexts):
                return None
    return None
