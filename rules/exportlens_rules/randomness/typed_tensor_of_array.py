"""Typed constructors of tensors that are given NumPy data of another type."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Array
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.calls.old_calls import tensor_of_array
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule
from exportlens.source.walking import walk

from exportlens_rules.reading import ancestors, words

_TYPES = {
    "torch.Tensor": "float32",
    "torch.FloatTensor": "float32",
    "torch.LongTensor": "int64",
    "torch.IntTensor": "int32",
    "torch.HalfTensor": "float16",
    "torch.ShortTensor": "int16",
    "torch.ByteTensor": "uint8",
    "torch.CharTensor": "int8",
    "torch.DoubleTensor": "float64",
}


# What changes the type of a tensor: made so at once, it does not matter which it had.
_CASTS = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "long", "int", "short", "bool", "byte"}
)
_WRONG = Outcome(WRONG, OK)


class TypedTensorOfArray(Rule):
    """`torch.FloatTensor(array)` in traced code, where the array is of float64.

    ## What it does
    Finds `torch.FloatTensor`, `torch.LongTensor` and their kin that are given a NumPy array whose type is known to
    be another: `np.zeros`, `np.linspace` and most others make float64. `torch.Tensor` of float64 too, unless it is cast.

    ## Why it matters
    Strict tracing makes the array a tensor of its own type, and a typed constructor takes no tensor of another:
    "expected FloatTensor (got DoubleTensor)". In eager and non-strict it converts. `torch.tensor(array, dtype=...)`
    converts everywhere. What `torch.Tensor` makes of such an array stays float64 in strict mode, and so does what is computed with it.

    ## References
    - https://docs.pytorch.org/docs/stable/tensors.html
    """

    code = "EXL513"
    name = "typed-tensor-of-array"
    outcome = Outcome(FAILS, OK)
    places = (Call,)
    examples = (
        Example(
            bad="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * torch.FloatTensor(np.linspace(0.0, 1.0, 4))
""",
            good="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * torch.tensor(np.linspace(0.0, 1.0, 4), dtype=torch.float32)
""",
        ),
        Example(
            bad="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + torch.LongTensor(np.zeros(4))
""",
            good="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + torch.LongTensor(np.zeros(4, dtype=np.int64))
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Call)
        wanted = _TYPES.get(place.name)
        if wanted is None or len(place.args) != 1:
            return
        array = place.args[0]
        if place.name == "torch.Tensor":
            if (
                isinstance(array, Array)
                and array.dtype == "float64"
                and not (array.traced or _is_cast(place))
            ):
                yield self.report(
                    place,
                    f"`{words(place.node)}` is given an array of float64: strict tracing keeps that type, and the program returns "
                    "another one than the model. Write torch.tensor(..., dtype=torch.float32).",
                    outcome=_WRONG,
                )
            return
        if isinstance(array, Array) and not array.traced and array.dtype not in (None, wanted):
            yield self.report(
                place,
                f"`{words(place.node)}` is given an array of {array.dtype}: strict tracing takes no conversion here. "
                f"Write torch.tensor(..., dtype=torch.{wanted}).",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        return tensor_of_array(report.place, context, _TYPES[report.place.name])


def _is_cast(place: Call) -> bool:
    """Whether the tensor, or the name that it is bound to, is cast, or whether that cannot be told."""
    around = ancestors(place)
    outer = around[0] if around else None
    if isinstance(outer, ast.BinOp):
        return False
    function = place.site.function
    if not (isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Name)) or function is None:
        return True
    name = outer.targets[0].id
    nodes = list(walk(function.node))
    used = [
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    ]
    computed = any(
        isinstance(node, ast.BinOp) and isinstance(side, ast.Name) and side.id == name
        for node in nodes
        if isinstance(node, ast.BinOp)
        for side in (node.left, node.right)
    )
    return not computed or not _CASTS.isdisjoint(used)
