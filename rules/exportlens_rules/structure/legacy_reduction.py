"""Losses made in forward with the old arguments of how to reduce."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Const
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.old_calls import reduction
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf

# Where `size_average` and `reduce` stand. Strict tracing knows `CrossEntropyLoss` itself: it exports with them.
_OLD_ARGUMENTS = {
    "BCELoss": (1, 2),
    "BCEWithLogitsLoss": (1, 2),
    "CosineEmbeddingLoss": (1, 2),
    "HingeEmbeddingLoss": (1, 2),
    "KLDivLoss": (0, 1),
    "L1Loss": (0, 1),
    "MSELoss": (0, 1),
    "MarginRankingLoss": (1, 2),
    "MultiLabelMarginLoss": (0, 1),
    "MultiLabelSoftMarginLoss": (1, 2),
    "MultiMarginLoss": (3, 4),
    "NLLLoss": (1, 3),
    "NLLLoss2d": (1, 3),
    "PoissonNLLLoss": (2, 4),
    "SmoothL1Loss": (0, 1),
    "SoftMarginLoss": (0, 1),
    "TripletMarginLoss": (4, 5),
}


class LegacyReduction(CallOf):
    """A loss is made in forward with `size_average` or `reduce`.

    ## What it does
    Finds `nn.MSELoss(size_average=False)(x, y)`, `nn.BCELoss(reduce=False)` and the like in traced code. Losses that `__init__`
    makes, the functions of torch.nn.functional, and `nn.CrossEntropyLoss` are fine with these arguments.

    ## Why it matters
    Strict tracing runs the constructor, and fails at the function of torch that makes the new argument, `reduction`, of the old
    ones ("torch.* op returned non-Tensor").

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html
    """

    code = "EXL616"
    name = "legacy-reduction"
    outcome = Outcome(FAILS, OK)
    callees = tuple(f"torch.nn.{middle}{name}" for name in _OLD_ARGUMENTS for middle in ("", "modules.loss."))
    wrong = "takes the old arguments of how to reduce, which strict tracing fails at."
    advice = "Write `reduction='sum'`, `'mean'` or `'none'`, or make the loss in `__init__`."
    examples = (
        Example(
            bad="""
def forward(self, x):
    return nn.MSELoss(size_average=False)(x, x + 1)
""",
            good="""
def forward(self, x):
    return nn.MSELoss(reduction="sum")(x, x + 1)
""",
        ),
        Example(
            bad="""
def forward(self, x):
    criterion = nn.L1Loss(reduce=False)
    return criterion(x, x + 1)
""",
            good="""
def forward(self, x):
    criterion = nn.L1Loss(reduction="none")
    return criterion(x, x + 1)
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        if place.receiver is not None:
            return False
        average, reduce = _OLD_ARGUMENTS[place.name.rpartition(".")[2]]
        given = (place.argument(average, "size_average"), place.argument(reduce, "reduce"))
        return any(
            value is not None and not (isinstance(value, Const) and value.value is None) for value in given
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return reduction(report.place, context, *_OLD_ARGUMENTS[report.place.name.rpartition(".")[2]])
