"""Dynamic dimensions for hardware targets that take static shapes alone."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import ExportCall, Place
from exportlens.inference.values import Const, Mapping_, Named, Sequence, Value
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule


class StaticTarget(Rule):
    """An export with dynamic dimensions is meant for a target that takes static shapes alone.

    ## What it does
    Finds `dynamic_shapes` with a Dim in export calls, where LiteRT or the Ethos-U backend is a configured target.

    ## Why it matters
    Their converters refuse a program with a size that is not a number. Export one program for each size that is needed.

    ## References
    - https://ai.google.dev/edge/litert/conversion/pytorch/overview
    """

    code = "EXL803"
    name = "static-target"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "whether the model has to take other sizes is for you to say: export it without `dynamic_shapes` for "
        "each size that it shall run with"
    )
    places = (ExportCall,)
    targets = ("litert", "executorch-ethos-u")
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, frames):
        return frames.relu()


def program():
    batch = torch.export.Dim("batch")
    return torch.export.export(M(), (torch.randn(2, 4),), dynamic_shapes=({0: batch},))
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, frames):
        return frames.relu()


def program():
    return torch.export.export(M(), (torch.randn(3, 4),))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, ExportCall)
        if _is_dynamic(place.arguments.get("dynamic_shapes")):
            yield self.report(
                place,
                "This export has dynamic dimensions, and the target takes static shapes alone. Leave dynamic_shapes out, "
                "and export one program for each size.",
                node=place.nodes.get("dynamic_shapes", place.node),
            )


def _is_dynamic(value: Value | None) -> bool:
    """Whether some dimension is certainly marked: by a Dim, or by anything that is not None or static."""
    if isinstance(value, Mapping_):
        return any(_is_dynamic(item) for item in value.items.values()) or _is_dim(value)
    if isinstance(value, Sequence):
        return any(_is_dynamic(item) for item in value.items or ())
    return False


def _is_dim(dims: Mapping_) -> bool:
    return any(
        isinstance(key, int)
        and not isinstance(value, Const)
        and not (isinstance(value, Named) and value.name.endswith(".STATIC"))
        for key, value in dims.items.items()
    )
