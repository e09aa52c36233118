"""Attention masks given to torch.nn.TransformerEncoder and its kin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Const, Tensor, Value, options
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.keywords import with_keywords
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_tensor, words


class _Mask(NamedTuple):
    """A mask argument of a layer and the flag that saves the layer from looking into it."""

    position: int
    name: str
    flag_position: int
    flag: str


# The signatures of `forward` in torch/nn/modules/transformer.py.
_MASKS = {
    "TransformerEncoder": (_Mask(1, "mask", 3, "is_causal"),),
    "TransformerDecoder": (_Mask(2, "tgt_mask", 6, "tgt_is_causal"),),
    "Transformer": (_Mask(2, "src_mask", 8, "src_is_causal"), _Mask(3, "tgt_mask", 9, "tgt_is_causal")),
}
_HOMES = ("torch.nn", "torch.nn.modules.transformer")


class TransformerMask(Rule):
    """A layer looks into its attention mask to see whether it is causal.

    ## What it does
    Finds calls of `nn.TransformerEncoder`, `nn.TransformerDecoder` and `nn.Transformer` with a mask and
    without `is_causal`.

    ## Why it matters
    Unless it is told, the layer compares the whole mask with a causal one and branches on the result, which
    both modes refuse. `is_causal=False` uses the mask as it is, `is_causal=True` says that it is causal.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html
    """

    code = "EXL614"
    name = "transformer-mask"
    outcome = Outcome(FAILS, FAILS)
    places = (Call,)
    callees = tuple(f"{home}.{name}" for home in _HOMES for name in _MASKS)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x):
        mask = torch.triu(torch.full((x.size(1), x.size(1)), float("-inf")), diagonal=1)
        return self.encoder(x, mask)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x):
        mask = torch.triu(torch.full((x.size(1), x.size(1)), float("-inf")), diagonal=1)
        return self.encoder(x, mask, is_causal=False)
""",
            inputs="(torch.randn(2, 5, 4),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        for mask in _untold(place):
            yield self.report(
                place,
                f"`{words(place.node)}` compares `{mask.name}` with a causal mask and branches on the "
                f"result: torch.export cannot trace it. Pass `{mask.flag}=False` (or True).",
            )
            return

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, Call)
        return with_keywords(report.place, {mask.flag: "False" for mask in _untold(report.place)}, context)


def _untold(place: Call) -> Iterator[_Mask]:
    """The masks that the layer would look into."""
    for mask in _MASKS[place.name.rpartition(".")[2]]:
        flag = place.argument(mask.flag_position, mask.flag)
        told = flag is not None and not (isinstance(flag, Const) and flag.value is None)
        given = place.argument(mask.position, mask.name)
        if not told and is_tensor(given) and _may_be_square(given):
            yield mask


def _may_be_square(mask: Value | None) -> bool:
    """Whether the mask has two dimensions as far as is known: others are not compared."""
    return mask is not None and all(
        isinstance(option, Tensor) and option.rank in (None, 2) for option in options(mask)
    )
