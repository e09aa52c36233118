"""Writes to the model on both sides of an operator that traces its functions."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.lost_writes import lost_attribute
from exportlens.outcome import OK, WRONG, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.operators.branches import COND, MAP, SCAN, WHILE_LOOP


class LostWrite(Rule):
    """An attribute is written behind `torch.cond`, `while_loop`, `map` or `scan`, after the same object was written before it.

    ## What it does
    Finds calls of these operators between two writes to attributes of one object, where what was written last is read
    afterwards.

    ## Why it matters
    Strict tracing loses the second write, without a word: the program goes on with the value that the attribute had before.
    Non-strict tracing gets it right.

    ## How to mend it
    Keep the value in a local variable, and set the attribute before the operator or not at all.

    ## References
    - https://docs.pytorch.org/docs/stable/higher_order_ops/index.html
    """

    code = "EXL711"
    name = "lost-write"
    outcome = Outcome(WRONG, OK)
    no_fix = (
        "which value the code after it means is for you to say: keep it in a local variable, and read that"
    )
    places = (Call,)
    callees = (*COND, *WHILE_LOOP, *MAP, *SCAN)
    examples = (
        Example(
            bad="""
def forward(self, x):
    self.scale = x.mean()
    y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    self.scale = y.mean() + 2
    return x * self.scale
""",
            good="""
def forward(self, x):
    self.scale = x.mean()
    y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    scale = y.mean() + 2
    return x * scale
""",
        ),
        Example(
            bad="""
def forward(self, x):
    from torch._higher_order_ops.map import map

    self.rows = 1
    y = map(lambda row: row + 1, x)
    self.rows = 3
    return y * self.rows
""",
            good="""
def forward(self, x):
    from torch._higher_order_ops.map import map

    y = map(lambda row: row + 1, x)
    self.rows = 3
    return y * self.rows
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        site = place.site
        calls = ((chunk.body, node) for _, chunk, node in reversed(site.trail))
        lost = lost_attribute([(site.chunk.body, place.node), *calls], certain=True)
        if lost is not None:
            yield self.report(
                place,
                f"What is written to `{lost}` behind this operator is lost in strict mode, as an attribute of the object was "
                "written before it: keep it in a local variable.",
            )
