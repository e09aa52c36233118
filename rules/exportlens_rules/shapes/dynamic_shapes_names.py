"""Names in `dynamic_shapes` that forward does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import ExportCall, Place
from exportlens.inference.values import ClassValue, Function, Instance, Mapping_
from exportlens.outcome import FAILS, Outcome
from exportlens.rule import Example, Report, Rule


class DynamicShapesNames(Rule):
    """`dynamic_shapes` names an argument that forward does not have.

    ## What it does
    Finds keys of a `dynamic_shapes` dict that are no parameters of the model's `forward`.

    ## Why it matters
    The keys must be the names of forward's parameters: export fails otherwise.

    ## References
    - https://docs.pytorch.org/docs/stable/export/api_reference.html
    """

    code = "EXL414"
    name = "dynamic-shapes-names"
    outcome = Outcome(FAILS, FAILS)
    no_fix = "which argument is meant is for you to say: write its name as `forward` has it"
    places = (ExportCall,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, image, scale):
        return image * scale


def program():
    batch = torch.export.Dim("batch")
    dynamic = {"images": {0: batch}, "scale": None}
    return torch.export.export(M(), (torch.randn(2, 4), torch.ones(4)), dynamic_shapes=dynamic)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, image, scale):
        return image * scale


def program():
    batch = torch.export.Dim("batch")
    dynamic = {"image": {0: batch}, "scale": None}
    return torch.export.export(M(), (torch.randn(2, 4), torch.ones(4)), dynamic_shapes=dynamic)
""",
            inputs="(torch.randn(2, 4), torch.ones(4))",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, ExportCall)
        shapes, names = place.arguments.get("dynamic_shapes"), _parameters(place)
        if not isinstance(shapes, Mapping_) or shapes.rest is not None or names is None:
            return
        wrong = [key for key in shapes.items if isinstance(key, str) and key not in names]
        if wrong:
            yield self.report(
                place,
                f"dynamic_shapes names `{wrong[0]}`, which forward does not have: its parameters are "
                f"{', '.join(f'`{name}`' for name in names)}.",
                node=place.nodes.get("dynamic_shapes", place.node),
            )


def _parameters(place: ExportCall) -> list[str] | None:
    model = place.model
    if not isinstance(model, Instance) or not isinstance(model.cls, ClassValue):
        return None
    forward = model.cls.attributes.get("forward")
    if not isinstance(forward, Function) or not isinstance(forward.node, ast.FunctionDef):
        return None
    arguments = forward.node.args
    if arguments.kwarg is not None or arguments.vararg is not None:
        return None
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)][1:]
