"""Losses of two tensors that a mask picked, each by itself."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.masked_pairs import check_pair, unequal_for_torch
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import promises_sizes

_FUNCTIONS = [
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_similarity",
]
_MODULES = [
    "MSELoss",
    "L1Loss",
    "SmoothL1Loss",
    "HuberLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineSimilarity",
]


class MaskedPair(CallOf):
    """A loss of two tensors that `masked_select`, or a mask computed anew for each, picked.

    ## What it does
    Finds `mse_loss`, `l1_loss`, `binary_cross_entropy`, `cosine_similarity` and their kin on two tensors that were picked by a
    mask, each by `masked_select` or by an index that is computed for it.

    ## Why it matters
    Each pick has a size of its own that only the data knows, and the loss asks whether the two are equal: "Could not guard
    on data-dependent expression". `torch._check(a.shape[0] == b.shape[0])` says so. Of two tensors that are indexed by one
    mask with a name, as `a[mask]` and `b[mask]`, torch knows it.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL424"
    name = "masked-pair"
    outcome = Outcome(FAILS, FAILS)
    callees = (
        *(f"torch.nn.functional.{name}" for name in _FUNCTIONS),
        *(f"torch.nn.{name}" for name in _MODULES),
    )
    wrong = "asks whether as many are picked of both, which depends on tensor data."
    advice = "Say so by torch._check(a.shape[0] == b.shape[0])."
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor, y: torch.Tensor):
    mask = y > 0
    predicted = torch.masked_select(x, mask)
    wanted = torch.masked_select(y, mask)
    return torch.nn.functional.mse_loss(predicted, wanted)
""",
            good="""
def forward(self, x: torch.Tensor, y: torch.Tensor):
    mask = y > 0
    predicted = torch.masked_select(x, mask)
    wanted = torch.masked_select(y, mask)
    torch._check(predicted.shape[0] == wanted.shape[0])
    return torch.nn.functional.mse_loss(predicted, wanted)
""",
            inputs="(torch.randn(3, 4), torch.randn(3, 4))",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor, y: torch.Tensor):
    return torch.nn.functional.l1_loss(x[y > 0], y[y > 0])
""",
            good="""
def forward(self, x: torch.Tensor, y: torch.Tensor):
    mask = y > 0
    return torch.nn.functional.l1_loss(x[mask], y[mask])
""",
            inputs="(torch.randn(3, 4), torch.randn(3, 4))",
        ),
    )

    def applies(self, place: Call) -> bool:
        given = (place.argument(0, "input"), place.argument(1, "target"))
        are_open = all(
            value is not None
            and all(isinstance(option, Tensor) and option.unbacked for option in options(value))
            for value in given
        )
        return are_open and not promises_sizes(place, "==") and unequal_for_torch(place)

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return check_pair(report.place, context)
