"""Packed sequences."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Array, Sequence, Value
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.packed_sequences import padded_for_packed
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import class_name, is_data, words

_PACKING = ("torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pack_sequence")
_UNPACKING = "torch.nn.utils.rnn.pad_packed_sequence"
_LAYERS = ("RNN", "LSTM", "GRU")
_ONLY_STRICT = Outcome(FAILS, OK)


class PackedSequence(Rule):
    """Sequences are packed by their lengths.

    ## What it does
    Finds `torch.nn.utils.rnn.pack_padded_sequence`, `pack_sequence` and `pad_packed_sequence` in traced code,
    and recurrent layers that are given a packed sequence.

    ## Why it matters
    Strict tracing does not enter packing; non-strict tracing stops where the lengths are read as numbers of
    Python: in packing if they are a list made from a tensor, else in the recurrent layer. Padded sequences
    with a mask compute the same.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html
    """

    code = "EXL606"
    name = "packed-sequence"
    outcome = Outcome(FAILS, FAILS)
    of_optional_inputs = False
    places = (Call,)
    callees = (
        *_PACKING,
        _UNPACKING,
        *(f"{home}.{layer}" for home in ("torch.nn", "torch.nn.modules.rnn") for layer in _LAYERS),
    )
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.tolist(), True, enforce_sorted=False)
        out, _ = self.rnn(packed)
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=5)[0]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x, lengths):
        out, _ = self.rnn(x)
        mask = torch.arange(5) < lengths[:, None]
        return out * mask[..., None]
""",
            inputs="(torch.randn(3, 5, 4), torch.tensor([5, 4, 2]))",
        ),
        Example(
            bad="""
def forward(self, x, lengths):
    from torch.nn.utils.rnn import pack_padded_sequence

    return pack_padded_sequence(x, lengths, True, enforce_sorted=False).data
""",
            good="""
def forward(self, x, lengths):
    return x * (torch.arange(5) < lengths[:, None])[..., None]
""",
            inputs="(torch.randn(3, 5, 4), torch.tensor([5, 4, 2]))",
            outcome=_ONLY_STRICT,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        lengths = place.argument(1, "lengths")
        first = place.args[0] if place.args else None
        if place.name in _PACKING:
            outcome = None if lengths is not None and _are_numbers_of_data(lengths) else _ONLY_STRICT
            yield self.report(
                place,
                f"`{words(place.node)}` reads lengths as numbers of Python, which tracing has none of. Keep "
                "the sequences padded and mask the result.",
                outcome=outcome,
            )
        elif place.name == _UNPACKING or (
            first is not None and class_name(first).endswith(".PackedSequence")
        ):
            yield self.report(
                place,
                f"`{words(place.node)}` reads the lengths of a packed sequence as numbers of Python, which "
                "tracing has none of. Keep the sequences padded and mask the result.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return padded_for_packed(report.place, context)


def _are_numbers_of_data(lengths: Value) -> bool:
    """Whether lengths are a list made from a tensor, or an array: then packing itself asks for the numbers."""
    if isinstance(lengths, Sequence):
        items = lengths.items if lengths.items is not None else [lengths.element]
        return any(is_data(item) for item in items)
    return isinstance(lengths, Array) and lengths.traced
