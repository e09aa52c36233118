"""A dynamic dimension with an example of size 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ExportCall, Place
from exportlens.inference.values import Const, Mapping_, Named, Sequence, Tensor, Value
from exportlens.outcome import BAKED, FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.exporting.example_sizes import grow_examples, written_sizes
from exportlens.rewriting.exporting.export_calls import forward_parameters
from exportlens.rule import Example, Report, Rule

_FIXED = Outcome(BAKED, BAKED)


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
        ones = [
            (tensor, dim, size, spec)
            for tensor, value, dims in _marked(place)
            for dim, spec in _dynamic(dims).items()
            if (size := _size(tensor, value, dim)) in (0, 1)
        ]
        # Dim.AUTO gives way in silence, all others stop the export.
        for tensor, dim, size, spec in sorted(ones, key=lambda one: _gives_way(one[3]))[:1]:
            yield self.report(
                place,
                f"Dimension {dim} is to be dynamic, and the example has size {size} there: torch "
                "treats 0 and 1 as constants. Use an example of size 2 or more.",
                node=tensor,
                outcome=_FIXED if _gives_way(spec) else None,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, ExportCall)
        shapes = report.place.arguments.get("dynamic_shapes")
        named = (
            {key: list(_dynamic(dims)) for key, dims in shapes.items.items()}
            if isinstance(shapes, Mapping_)
            else {}
        )
        return grow_examples(
            report.place, [list(_dynamic(dims)) for dims in _per_input(report.place)], named, context
        )


def _marked(place: ExportCall) -> Iterator[tuple[ast.expr, Value | None, Value]]:
    """Each example input, as it is written and its value where that is known, and what is said of its sizes."""
    inputs, given = place.nodes.get("args"), place.arguments.get("args")
    known: list[Value | None] = [*((given.items or ()) if isinstance(given, Sequence) else ())]
    if isinstance(inputs, (ast.Tuple, ast.List)):
        written: list[ast.expr] = inputs.elts
        known += [None] * (len(written) - len(known))
    elif isinstance(inputs, ast.expr):
        written = [inputs] * len(known)
    else:
        return
    yield from zip(written, known, _per_input(place), strict=False)
    keywords, shapes = place.arguments.get("kwargs"), place.arguments.get("dynamic_shapes")
    if "kwargs" in place.nodes and isinstance(keywords, Mapping_) and isinstance(shapes, Mapping_):
        for name, value in keywords.items.items():
            yield place.nodes["kwargs"], value, shapes.items.get(name, Const(None))


def _per_input(place: ExportCall) -> list[Value]:
    """What is said of each positional input."""
    shapes = place.arguments.get("dynamic_shapes")
    if isinstance(shapes, Mapping_) and shapes.rest is None:
        names = forward_parameters(place.model)
        return (
            list(shapes.items.values())
            if names is None
            else [shapes.items.get(name, Const(None)) for name in names]
        )
    if isinstance(shapes, Sequence) and shapes.items is not None:
        return shapes.items
    return []


def _dynamic(dims: Value) -> dict[int, Value]:
    """The dimensions that are marked, and how; None and Dim.STATIC mark nothing."""
    given: dict[int, Value] = {}
    if isinstance(dims, Mapping_):
        given = {key: value for key, value in dims.items.items() if isinstance(key, int)}
    elif isinstance(dims, Sequence) and dims.items is not None:
        given = dict(enumerate(dims.items))
    return {
        key: value
        for key, value in given.items()
        if not isinstance(value, Const) and not (isinstance(value, Named) and value.name.endswith(".STATIC"))
    }


def _gives_way(spec: Value) -> bool:
    return isinstance(spec, Named) and spec.name.endswith(".AUTO")


def _size(tensor: ast.expr, value: Value | None, dim: int) -> int | None:
    """The size of an example input in `dim`, where it is written as a number."""
    dims = value.dims if isinstance(value, Tensor) else None
    if dims is not None and dim < len(dims):
        known = dims[dim]
        return known.value if isinstance(known, Const) and isinstance(known.value, int) else None
    sizes = written_sizes(tensor)
    node = sizes[dim] if sizes is not None and 0 <= dim < len(sizes) else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
