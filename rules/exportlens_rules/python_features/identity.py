"""`id(t)` and `id(module)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Tensor, options
from exportlens.outcome import BAKED, FAILS, OK, WRONG, Outcome
from exportlens.rewriting.calls.identities import identity_for_id, member_by_identity, recorded_by
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import ancestors, words


class Identity(CallOf):
    """`id(...)` is frozen at export.

    ## What it does
    Finds `id(...)` in traced code whose result may reach the program: on tensors, Modules and other objects.

    ## Why it matters
    An identity is an address of the tracing process. As a number it is frozen into the program; as a dict key
    it only works within one trace. Older torch fails in strict mode.

    ## References
    - https://docs.python.org/3/library/functions.html#id
    """

    code = "EXL301"
    name = "identity"
    outcome = Outcome(BAKED, BAKED, before={"2.8": (FAILS, BAKED)})
    callees = ("builtins.id",)
    wrong = "is an address of the tracing process: the program keeps it as a constant."
    advice = "Use a name or an index that you give yourself."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return x + id(x) % 1009
""",
            good="""
def forward(self, x):
    return x + 7
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        return recorded_by(ancestors(place)) is None

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return identity_for_id(report.place, context)


class RecordedIdentity(Rule):
    """The `id` of a parameter or buffer is looked up among identities that the constructor recorded.

    ## What it does
    Finds `id(p)` of a tensor in traced code that is compared with, or looked up in, an attribute that the constructor filled
    with identities: `id(p) in self.frozen` where `self.frozen = {id(p) for p in self.backbone.parameters()}`.

    ## Why it matters
    Non-strict tracing puts other objects in the place of parameters and buffers: none of them is found, and the program
    silently takes the other side. Strict tracing sees the parameters themselves.

    ## References
    - https://docs.python.org/3/library/functions.html#id
    """

    code = "EXL340"
    name = "recorded-identity"
    outcome = Outcome(OK, WRONG)
    places = (Call,)
    callees = ("builtins.id",)
    examples = (
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)
        self.frozen = {id(p) for p in self.backbone.parameters()}

    def forward(self, x):
        penalty = sum(p.square().sum() for p in self.parameters() if id(p) not in self.frozen)
        return self.head(self.backbone(x)) + penalty
""",
            good="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        penalty = sum(p.square().sum() for p in self.head.parameters())
        return self.head(self.backbone(x)) + penalty
""",
            inputs="(torch.randn(3, 4),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        kept = place.args and all(
            isinstance(each, Tensor) and each.origin in ("parameter", "buffer")
            for each in options(place.args[0])
        )
        attribute = recorded_by(ancestors(place)) if kept else None
        if attribute is not None:
            yield self.report(
                place,
                f"`{words(place.node)}` is looked for in `{ast.unparse(attribute)}`, which the constructor filled with identities: "
                "non-strict tracing has other objects in the place of parameters, and finds none. Compare with `is`, or by name.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return member_by_identity(report.place, context)
