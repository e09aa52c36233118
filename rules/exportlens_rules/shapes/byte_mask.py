"""A mask of bytes where torch wants booleans."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, ItemRead, Place
from exportlens.inference.values import Sequence, Tensor, Value
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.checks.guards import as_boolean_mask
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_tensor, words


class ByteMask(Rule):
    """A tensor of uint8 is used as a mask.

    ## What it does
    Finds `x[mask]` and `torch.where(mask, a, b)` where `mask` is a tensor of bytes: `(x > 0).byte()`.

    ## Why it matters
    Older torch had no booleans: masks were bytes. Eager still takes them with a warning, while tracing
    refuses them in both modes.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.where.html
    """

    code = "EXL421"
    name = "byte-mask"
    outcome = Outcome(FAILS, FAILS)
    places = (ItemRead, Call)
    callees = ("torch.where", "torch.Tensor.where")
    examples = (
        Example(
            bad="""
def forward(self, x):
    mask = (x > 0).byte()
    return torch.where(mask, x, -x)
""",
            good="""
def forward(self, x):
    mask = x > 0
    return torch.where(mask, x, -x)
""",
        ),
        Example(
            bad="""
def forward(self, x):
    mask = (x > 0).byte()
    return x[mask].sum()
""",
            good="""
def forward(self, x):
    mask = x > 0
    return x[mask].sum()
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, (ItemRead, Call))
        if isinstance(place, ItemRead):
            key = place.key
            parts = key.items if isinstance(key, Sequence) and key.items is not None else [key]
            masks = parts if is_tensor(place.owner) else []
        else:
            given = place.argument(0, "condition")
            # With nothing to choose from, `torch.where(mask)` asks where it is not zero: any type will do.
            chooses = len(place.args) + len(place.kwargs) > 1
            masks = [given] if given is not None and chooses else []
        if any(map(_is_bytes, masks)):
            yield self.report(
                place,
                f"`{words(place.node)}` takes a mask of uint8: tracing wants booleans. Make it by a comparison, "
                "or call `.bool()` on it.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        return as_boolean_mask(report.place, context)


def _is_bytes(value: Value) -> bool:
    return isinstance(value, Tensor) and value.dtype == "uint8" and value.origin != "constant"
