"""A dynamic dimension with an example of size 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import ExportCall, Place
from exportlens.inference.values import Const, Mapping_, Sequence, Value
from exportlens.outcome import FAILS, Outcome
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
        inputs, shapes = place.nodes.get("args"), place.arguments.get("dynamic_shapes")
        if not isinstance(inputs, (ast.Tuple, ast.List)):
            return
        for tensor, dims in zip(inputs.elts, _per_input(shapes), strict=False):
            for dim in _dynamic(dims):
                size = _size(tensor, dim)
                if size in (0, 1):
                    yield self.report(
                        place,
                        f"Dimension {dim} is to be dynamic, and the example has size {size} there: torch "
                        "treats 0 and 1 "
                        "as constants. Use an example of size 2 or more.",
                        node=tensor,
                    )
                    return


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


_CREATIONS = frozenset({"rand", "randn", "zeros", "ones", "empty"})


def _size(tensor: ast.expr, dim: int) -> int | None:
    """The size of `torch.randn(1, 4)` in `dim`, where it is written as a number."""
    if not (
        isinstance(tensor, ast.Call)
        and isinstance(tensor.func, ast.Attribute)
        and tensor.func.attr in _CREATIONS
    ):
        return None
    sizes = list(tensor.args)
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = list(sizes[0].elts)
    node = sizes[dim] if 0 <= dim < len(sizes) else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
