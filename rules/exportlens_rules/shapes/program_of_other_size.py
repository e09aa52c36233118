"""Programs that are called with other sizes than they were exported for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ExportCall, Place, ProgramCall
from exportlens.inference.values import Const, Sequence, Tensor, Value
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.exporting.export_calls import add_dynamic_shapes
from exportlens.rule import Example, Report, Rule


class ProgramOfOtherSize(Rule):
    """A program exported for fixed sizes is called with another size.

    ## What it does
    Finds calls of an exported program, in the code that exports it, with a tensor of another size than the example's,
    where the export declares no dynamic shapes.

    ## Why it matters
    An export without `dynamic_shapes` makes every size of its example inputs a constant: the call raises "Guard
    failed".

    ## References
    - https://docs.pytorch.org/docs/stable/export.html#expressing-dynamism
    """

    code = "EXL420"
    name = "program-of-other-size"
    outcome = Outcome(FAILS, FAILS)
    places = (ProgramCall,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1


def program():
    exported = torch.export.export(M(), (torch.randn(2, 4),))
    exported.module()(torch.randn(3, 4))
    return exported
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1


def program():
    batch = torch.export.Dim("batch")
    exported = torch.export.export(M(), (torch.randn(2, 4),), dynamic_shapes={"x": {0: batch}})
    exported.module()(torch.randn(3, 4))
    return exported
""",
            inputs="(torch.randn(2, 4),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, ProgramCall)
        if _is_guarded(place):
            return
        examples = _examples(place.export)
        for number, (example, given) in enumerate(zip(examples, place.args, strict=False)):
            for dim, (fixed, size) in enumerate(zip(_sizes(example), _sizes(given), strict=False)):
                if fixed is not None and size is not None and fixed != size:
                    yield self.report(
                        place,
                        f"Dimension {dim} of input {number} is {size} here, and the program was exported for "
                        f'{fixed}: this call raises "Guard failed". Give the export dynamic_shapes.',
                    )
                    return

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, ProgramCall)
        return add_dynamic_shapes(report.place.export, context)


def _is_guarded(place: ProgramCall) -> bool:
    """Whether the call stands where an error is expected: in a `try`, or in a `with` such as `pytest.raises`."""
    return any(
        isinstance(block, (ast.Try, ast.With)) and any(node is place.node for node in ast.walk(block))
        for statement in place.site.chunk.body
        for block in ast.walk(statement)
    )


def _examples(export: ExportCall) -> list[Value]:
    """The example inputs of an export that fixes their sizes."""
    shapes, inputs = export.arguments.get("dynamic_shapes"), export.arguments.get("args")
    static = shapes is None or (isinstance(shapes, Const) and shapes.value is None)
    return inputs.items or [] if static and isinstance(inputs, Sequence) else []


def _sizes(value: Value) -> list[int | None]:
    dims = value.dims if isinstance(value, Tensor) and value.dims is not None else ()
    return [dim.value if isinstance(dim, Const) and isinstance(dim.value, int) else None for dim in dims]
