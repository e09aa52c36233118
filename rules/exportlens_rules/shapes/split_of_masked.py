"""Operators that need to know a size which depends on data."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.inference.values import Const, Shape, Tensor, options
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_unbacked

_NAMES = ("chunk", "split", "tensor_split", "unbind", "diff", "roll", "logsumexp")


class SplitOfMasked(CallOf):
    """An operator has to know a size that depends on tensor data.

    ## What it does
    Finds `chunk`, `split`, `tensor_split`, `unbind`, `cdist`, `diff`, `roll` and `logsumexp` on the result of a mask, of `nonzero` or of
    `unique`. Most operators take such tensors; these do not.

    ## Why it matters
    They decide by the size how to compute, and the size is not known while tracing.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL408"
    name = "operator-on-data-dependent-size"
    outcome = Outcome(FAILS, FAILS)
    callees = (
        "torch.cdist",
        *(f"{home}.{name}" for home in ("torch", "torch.Tensor") for name in _NAMES),
    )
    wrong = "decides by a size that depends on tensor data."
    advice = "Pad to a size that is known, or compute with a mask."
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return x[x > 0].chunk(2)[0]
""",
            good="""
def forward(self, x: torch.Tensor):
    return x.clamp(min=0).chunk(2)[0]
""",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    kept = x[x[:, 0] > -100]
    return torch.cdist(kept, kept)
""",
            good="""
def forward(self, x: torch.Tensor):
    return torch.cdist(x, x)
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        method = place.receiver is not None
        given = (
            place.receiver if method else place.argument(0, "x1" if place.name.endswith("cdist") else "input")
        )
        if given is None or not is_unbacked(given):
            return False
        if place.name.endswith(("cdist", "logsumexp")):
            return True
        if place.name.endswith(".split"):
            # A list of sizes needs no division: each part is as long as it says.
            sizes = place.argument(0 if method else 1, "split_size")
            if not isinstance(sizes, (Const, Shape)) or (isinstance(sizes, Shape) and sizes.unbacked):
                return False
        index = (0 if method else 1) + (not place.name.endswith("unbind"))
        dim = place.argument(index, "dim" if not place.name.endswith("roll") else "dims")
        first = dim is None or (isinstance(dim, Const) and dim.value == 0)
        flat = all(isinstance(option, Tensor) and option.rank == 1 for option in options(given))
        return flat or (first and not place.name.endswith("diff"))
