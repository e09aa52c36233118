"""Rows of lengths that tensor data decides, padded to the longest."""

from __future__ import annotations

from exportlens.inference.places import Call
from exportlens.inference.values import Sequence
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_unbacked


class PadRagged(CallOf):
    """`pad_sequence` of rows whose lengths hang on tensor data.

    ## What it does
    Finds `torch.nn.utils.rnn.pad_sequence([row[mask] for ...])`.

    ## Why it matters
    Padding compares the lengths to find the longest; strict tracing cannot compare lengths that only the data
    knows. Keep the rows at full length and set to zero what the mask leaves out.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL417"
    name = "pad-ragged"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "how long the longest piece is, is only known when the model runs: pad to a fixed length, or pad "
        "before the model is called"
    )
    callees = ("torch.nn.utils.rnn.pad_sequence",)
    wrong = "compares lengths that hang on tensor data, which strict tracing cannot."
    advice = "Keep the rows at full length and mask them."
    examples = (
        Example(
            bad="""
def forward(self, x):
    rows = [row[row > 0] for row in x]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).sum()
""",
            good="""
def forward(self, x):
    return torch.where(x > 0, x, 0.0).sum()
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        rows = place.argument(0, "sequences")
        if not isinstance(rows, Sequence):
            return False
        if rows.items is not None:
            return len(rows.items) > 1 and all(is_unbacked(item) for item in rows.items)
        return is_unbacked(rows.element)
