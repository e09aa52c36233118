"""Batch normalization of rows whose number depends on data."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Tensor
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.sizes import check_rows
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import promises_sizes, words


class NormOfMasked(Rule):
    """Batch normalization of what a mask selects, where the code does not say that anything is left.

    ## What it does
    Finds `nn.BatchNorm1d` and its kin, and `torch.nn.functional.batch_norm` on rows that a mask, `nonzero` or `unique` picked.

    ## Why it matters
    The operator treats a tensor without elements in another way, and how many rows are left is not known while
    tracing: "Could not guard on data-dependent expression". `torch._check(rows.shape[0] != 0)` promises that some are
    left, and raises at run time where none is.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL423"
    name = "norm-of-masked-rows"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = (
        "torch.nn.functional.batch_norm",
        *(
            f"{home}.BatchNorm{dims}d"
            for home in ("torch.nn", "torch.nn.modules.batchnorm")
            for dims in (1, 2, 3)
        ),
    )
    examples = (
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    kept = x[x.sum(1) > -100]
    return torch.nn.functional.batch_norm(kept, torch.zeros(4), torch.ones(4)).sum()
""",
            good="""
def forward(self, x: torch.Tensor):
    kept = x[x.sum(1) > -100]
    torch._check(kept.shape[0] != 0)
    return torch.nn.functional.batch_norm(kept, torch.zeros(4), torch.ones(4)).sum()
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        rows = place.argument(0, "input")
        open_rows = isinstance(rows, Tensor) and rows.unbacked
        if open_rows and not promises_sizes(place):
            yield self.report(
                place,
                f"`{words(place.node)}` normalizes rows whose number depends on tensor data, and must know that there "
                "are any: say so by torch._check(rows.shape[0] != 0).",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return check_rows(report.place, context)
