"""Control-flow operators under their old names."""

from __future__ import annotations

from exportlens.outcome import OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class FunctorchControlFlow(CallOf):
    """`functorch.experimental.control_flow` is the old home of torch.cond.

    ## What it does
    Finds calls of `functorch.experimental.control_flow.cond` and `.map`.

    ## Why it matters
    Nothing yet: they still export on the versions that were measured, and are kept for old code only. The
    rule speaks up where a version refuses them.

    ## References
    - https://docs.pytorch.org/docs/stable/cond.html
    """

    code = "EXL705"
    name = "functorch-control-flow"
    outcome = Outcome(OK, OK)
    callees = ("functorch.experimental.control_flow.cond", "functorch.experimental.control_flow.map")
    wrong = "is the old name."
    advice = "Use torch.cond and torch._higher_order_ops.map."
    examples = (
        Example(
            bad="""
def forward(self, x):
    from functorch.experimental.control_flow import cond

    return cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, [x])
""",
            good="""
def forward(self, x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
""",
        ),
    )
