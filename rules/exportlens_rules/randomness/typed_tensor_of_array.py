"""Typed constructors of tensors that are given NumPy data of another type."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import Call, Place
from exportlens.inference.values import Array
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words

_TYPES = {
    "torch.FloatTensor": "float32",
    "torch.LongTensor": "int64",
    "torch.IntTensor": "int32",
    "torch.HalfTensor": "float16",
    "torch.ShortTensor": "int16",
}


class TypedTensorOfArray(Rule):
    """`torch.FloatTensor(array)` in traced code, where the array is of float64.

    ## What it does
    Finds `torch.FloatTensor`, `torch.LongTensor` and their kin that are given a NumPy array whose type is known to
    be another: `np.zeros`, `np.linspace` and most others make float64.

    ## Why it matters
    Strict tracing makes the array a tensor of its own type, and a typed constructor takes no tensor of another:
    "expected FloatTensor (got DoubleTensor)". In eager and non-strict it converts. `torch.tensor(array, dtype=...)`
    converts everywhere.

    ## References
    - https://docs.pytorch.org/docs/stable/tensors.html
    """

    code = "EXL513"
    name = "typed-tensor-of-array"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "whether float64 or float32 is meant further on is for you to say: make the tensor once in `__init__`, "
        "and register it as a buffer"
    )
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
        if isinstance(array, Array) and not array.traced and array.dtype not in (None, wanted):
            yield self.report(
                place,
                f"`{words(place.node)}` is given an array of {array.dtype}: strict tracing takes no conversion here. "
                f"Write torch.tensor(..., dtype=torch.{wanted}).",
            )
