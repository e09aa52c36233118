"""In-place writes to tensors that no Module owns."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Mutation, Place
from exportlens.inference.values import Tensor, options
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.registrations import clone_before_write
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class FrozenStorage(Rule):
    """An in-place write to a tensor that a plain object holds.

    ## What it does
    Finds `text.ids[:, 0] = start` and the like: writes to a tensor that is made of constants while tracing,
    or held by a plain object, as what a tokenizer returns is.

    ## Why it matters
    Such a tensor becomes a constant of the program. Older torch refuses with "cannot mutate tensors with
    frozen storage". A clone is the program's own.

    torch's tutorial reports it for BLIP before 2.7. The small example below exports even on 2.4 and 2.6, so
    what is said of these versions is a statement of theirs, not a measurement.

    ## References
    - https://docs.pytorch.org/tutorials/recipes/torch_export_challenges_solutions.html
    """

    code = "EXL207"
    name = "frozen-storage"
    outcome = Outcome(OK, OK, before={"2.7": (FAILS, FAILS)})
    places = (Mutation,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class Encoding:
    def __init__(self, ids):
        self.ids = ids


def tokenize(text):
    return Encoding(torch.tensor([[ord(letter) for letter in text]]))


class M(nn.Module):
    def forward(self, x):
        text = tokenize("abcd")
        text.ids[:, 0] = 7
        return x + text.ids
""",
            good="""
import torch
from torch import nn


class Encoding:
    def __init__(self, ids):
        self.ids = ids


def tokenize(text):
    return Encoding(torch.tensor([[ord(letter) for letter in text]]))


class M(nn.Module):
    def forward(self, x):
        text = tokenize("abcd")
        ids = text.ids.clone()
        ids[:, 0] = 7
        return x + ids
""",
            inputs="(torch.randn(2, 4),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Mutation)
        if all(
            isinstance(option, Tensor) and option.origin in ("constant", "outside", "attribute", "literal")
            for option in options(place.target)
        ):
            yield self.report(
                place,
                f"`{words(place.node)}` writes to a tensor that no Module owns: it becomes a constant of "
                "the program, "
                "which older torch refuses to write. Clone it first.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        return clone_before_write(report.place, context)
