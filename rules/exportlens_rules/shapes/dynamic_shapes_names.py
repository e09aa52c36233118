"""Names in `dynamic_shapes` that forward does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.classes import class_attribute
from exportlens.inference.places import ExportCall, Place
from exportlens.inference.values import ClassValue, Function, Instance, Mapping_
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.exporting.shape_names import given_inputs, named_as_inputs
from exportlens.rule import Example, Report, Rule


class DynamicShapesNames(Rule):
    """`dynamic_shapes` names an argument that forward does not have, or leaves out one that the call gives.

    ## What it does
    Finds keys of a `dynamic_shapes` dict that are no parameters of the model's `forward`, and inputs of the export call that
    are no keys of it.

    ## Why it matters
    The keys must be the names of the inputs that the call gives, all of them: export fails otherwise. An input whose sizes
    are fixed has None.

    ## References
    - https://docs.pytorch.org/docs/stable/export/api_reference.html
    """

    code = "EXL414"
    name = "dynamic-shapes-names"
    outcome = Outcome(FAILS, FAILS)
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
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, image, scale):
        return image * scale


def program():
    dynamic = {"image": {0: torch.export.Dim("batch")}}
    return torch.export.export(M(), (torch.randn(2, 4), torch.ones(4)), dynamic_shapes=dynamic)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, image, scale):
        return image * scale


def program():
    dynamic = {"image": {0: torch.export.Dim("batch")}, "scale": None}
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
            return
        left_out = [name for name in _given(place, names) if name not in shapes.items]
        if left_out and shapes.items:
            yield self.report(
                place,
                f"dynamic_shapes says nothing of `{left_out[0]}`, which the call gives: it must name every input. Give None "
                "for one whose sizes are fixed.",
                node=place.nodes.get("dynamic_shapes", place.node),
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, ExportCall)
        return named_as_inputs(report.place, _parameters(report.place) or [], context)


def _given(place: ExportCall, names: list[str]) -> list[str]:
    try:
        return given_inputs(place, names)
    except Refused:
        return []


def _parameters(place: ExportCall) -> list[str] | None:
    model = place.model
    if not isinstance(model, Instance) or not isinstance(model.cls, ClassValue):
        return None
    forward, _, hidden = class_attribute(model.cls, "forward")
    if hidden:
        return None
    if not isinstance(forward, Function) or not isinstance(forward.node, ast.FunctionDef):
        return None
    arguments = forward.node.args
    if arguments.kwarg is not None or arguments.vararg is not None:
        return None
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)][1:]
