"""In-place writes to tensors whose storage older torch freezes."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Mutation, Place
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.state.registrations import clone_before_write
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class FrozenStorage(Rule):
    """An in-place write to what a conversion returned, or to a tensor that no Module owns.

    ## What it does
    Finds `ids = tokens.to(device); ids[:, 0] = start` and the like: in-place writes to the result of `.to()`, `.float()`,
    `.long()`, `.cpu()` and other conversions, to views of it, and to tensors that a global or a plain attribute holds.

    ## Why it matters
    torch before 2.6 refuses both in both modes: what a conversion returns may be the very tensor that was converted, so
    export freezes it ("cannot mutate tensors with frozen storage"). BLIP's captioner fails there, as torch's tutorial
    tells. A clone is the program's own. `torch.tensor([...])`, `.clone()` and `.type_as()` are not affected.

    ## References
    - https://docs.pytorch.org/tutorials/recipes/torch_export_challenges_solutions.html
    """

    code = "EXL207"
    name = "frozen-storage"
    outcome = Outcome(OK, OK, before={"2.6": (FAILS, FAILS)})
    places = (Mutation,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class Encoding:
    def __init__(self, ids):
        self.ids = ids

    def to(self, device):
        return Encoding(self.ids.to(device))


def tokenize(text):
    return Encoding(torch.tensor([[ord(letter) for letter in text]]))


class M(nn.Module):
    def forward(self, x):
        text = tokenize("abcd").to(x.device)
        text.ids[:, 0] = 7
        return x + text.ids
""",
            good="""
import torch
from torch import nn


class Encoding:
    def __init__(self, ids):
        self.ids = ids

    def to(self, device):
        return Encoding(self.ids.to(device))


def tokenize(text):
    return Encoding(torch.tensor([[ord(letter) for letter in text]]))


class M(nn.Module):
    def forward(self, x):
        text = tokenize("abcd").to(x.device)
        ids = text.ids.clone()
        ids[:, 0] = 7
        return x + ids
""",
            inputs="(torch.randn(2, 4),)",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    weights = (x > 0).float()
    weights[:, 0] = 2
    return x * weights
""",
            good="""
def forward(self, x: torch.Tensor):
    weights = (x > 0).float().clone()
    weights[:, 0] = 2
    return x * weights
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Mutation)
        given = list(options(place.target))
        if not all(isinstance(option, Tensor) for option in given):
            return
        tensors = [option for option in given if isinstance(option, Tensor)]
        written = words(place.node)
        if all(tensor.converted for tensor in tensors):
            yield self.report(
                place,
                f"`{written}` is written in place, but it is what a conversion such as `.to()` or `.float()` returned: "
                "torch before 2.6 freezes that while it exports. Clone it first.",
            )
        elif all(tensor.origin in ("outside", "attribute") for tensor in tensors):
            yield self.report(
                place,
                f"`{written}` writes to a tensor that no Module owns: it becomes a constant of the program, which "
                "torch before 2.6 refuses to write. Clone it first.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        return clone_before_write(report.place, context)
