"""A dynamic dimension with an example of size 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ExportCall, Place
from exportlens.inference.values import Const, Mapping_, Sequence, Tensor, Value
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.export_calls import grow_examples, written_sizes
from exportlens.rule import Example, Report, Rule


class ExampleBatchOfOne(Rule):
    """The example input has size 1 in a dimension that is to be dynamic.

    ## What it does
    Finds export calls with `dynamic_shapes` whose example input is of size 0 or 1 in a dynamic dimension.

    ## Why it matters
    Sizes 0 and 1 are special in torch (broadcasting), so tracing fixes them: export fails with "specialized
    to be a constant (1)", or the dimension silently becomes static with Dim.AUTO.

    ## References
    - https://docs.pytorch.org/docs/stable/export/programming_model.html
    """

    code = "EXL413"
    name = "example-batch-of-one"
    outcome = Outcome(FAILS, FAILS)
    places = (ExportCall,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1


def program():
    batch = torch.export.Dim("batch")
    return torch.export.export(M(), (torch.randn(1, 4),), dynamic_shapes={"x": {0: batch}})
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1


def program():
    batch = torch.export.Dim("batch")
    return torch.export.export(M(), (torch.randn(2, 4),), dynamic_shapes={"x": {0: batch}})
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, ExportCall)
        inputs, given = place.nodes.get("args"), place.arguments.get("args")
        if not isinstance(inputs, (ast.Tuple, ast.List)):
            return
        known = given.items or [] if isinstance(given, Sequence) else []
        per_input = _per_input(place.arguments.get("dynamic_shapes"))
        for number, (tensor, dims) in enumerate(zip(inputs.elts, per_input, strict=False)):
            value = known[number] if number < len(known) else None
            for dim in _dynamic(dims):
                size = _size(tensor, value, dim)
                if size in (0, 1):
                    yield self.report(
                        place,
                        f"Dimension {dim} is to be dynamic, and the example has size {size} there: torch "
                        "treats 0 and 1 as constants. Use an example of size 2 or more.",
                        node=tensor,
                    )
                    return

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, ExportCall)
        per_input = _per_input(report.place.arguments.get("dynamic_shapes"))
        return grow_examples(report.place, [_dynamic(dims) for dims in per_input], context)


def _per_input(shapes: Value | None) -> list[Value]:
    if isinstance(shapes, Mapping_) and shapes.rest is None:
        return list(shapes.items.values())
    if isinstance(shapes, Sequence) and shapes.items is not None:
        return shapes.items
    return []


def _dynamic(dims: Value) -> list[int]:
    """The dimensions that are marked; None and Dim.STATIC mark nothing."""
    if isinstance(dims, Mapping_):
        return [
            key for key, value in dims.items.items() if isinstance(key, int) and not isinstance(value, Const)
        ]
    if isinstance(dims, Sequence) and dims.items is not None:
        return [index for index, value in enumerate(dims.items) if not isinstance(value, Const)]
    return []


def _size(tensor: ast.expr, value: Value | None, dim: int) -> int | None:
    """The size of an example input in `dim`, where it is written as a number."""
    dims = value.dims if isinstance(value, Tensor) else None
    if dims is not None and dim < len(dims):
        known = dims[dim]
        return known.value if isinstance(known, Const) and isinstance(known.value, int) else None
    sizes = written_sizes(tensor)
    node = sizes[dim] if sizes is not None and 0 <= dim < len(sizes) else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
