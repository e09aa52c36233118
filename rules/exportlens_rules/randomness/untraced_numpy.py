"""Functions of NumPy that strict tracing cannot translate."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from typing import Any

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeRead, Call, Place
from exportlens.inference.values import Array, Const, Tensor, TensorScalar
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.numbers.unraveled import divided_by_sizes
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import words


def _table() -> dict[str, Any]:
    """What torch says that it has no translation of (scripts/generate_numpy_functions.py)."""
    text = importlib.resources.files(__package__).joinpath("untraced_numpy.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


_TABLE = _table()
_NAMES = frozenset(f"numpy.{name}" for name in _TABLE["names"]) | {
    f"numpy.ndarray.{name}" for name in _TABLE["methods"]
}
# Assertions of tests: strict tracing passes over the whole of numpy.testing, whatever it is given (measured on torch 2.13).
_TESTING = frozenset(
    f"numpy.testing.assert_{name}"
    for name in (
        "", "allclose", "almost_equal", "approx_equal", "array_almost_equal", "array_equal", "array_less", "equal", "raises",
        "string_equal",
    )
)  # fmt: skip
_ATTRIBUTES: frozenset[str] = frozenset(_TABLE["attributes"])
# What torch's translation gives is no tensor, whatever it is given: strict tracing refuses it (measured on torch 2.13).
_NUMBERS = frozenset({"numpy.isscalar", "numpy.ndim", "numpy.size"})
# The parameters that a translation does not take, and the values of them that it passes over.
_REFUSED: dict[str, dict[str, object]] = {f"numpy.{name}": given for name, given in _TABLE["refused"].items()}


_OF_DATA = Outcome(FAILS, FAILS)


class UntracedNumpy(CallOf):
    """A function of NumPy that torch has no translation of, or not with this argument.

    ## What it does
    Finds `np.interp`, `np.setdiff1d`, `np.ndindex` and all other functions of NumPy in traced code that torch does not
    know, whatever they are given; `np.testing.assert_allclose` and its kin; `np.ndim`, `np.size` and `np.isscalar`, whose results are no tensors; methods and
    attributes of arrays that it does not know, such as `a.tobytes()` and `a.dtype`; and arguments that torch's
    translation does not take, such as `return_index` of `np.unique` or `where` of `np.sum`.

    ## Why it matters
    Strict tracing translates NumPy into torch, function by function, and fails where there is none, even on constants.
    Non-strict tracing just runs NumPy on what is no tensor.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#which-numpy-features-does-torch-compile-support
    """

    code = "EXL511"
    name = "untraced-numpy"
    outcome = Outcome(FAILS, OK)
    places = (Call, AttributeRead)
    callees = tuple(sorted(_NAMES | _NUMBERS | _TESTING | _REFUSED.keys()))
    wrong = "has no translation in torch: strict tracing fails."
    advice = "Compute it in __init__, or with torch."

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, AttributeRead):
            if place.attr in _ATTRIBUTES and isinstance(place.owner, Array):
                yield self.report(
                    place,
                    f"`{words(place.node)}`: torch does not know this attribute of a NumPy array; strict tracing fails. "
                    f"{self.advice}",
                )
            return
        assert isinstance(place, Call)
        if place.name in _NAMES or place.name in _NUMBERS or place.name in _TESTING:
            yield from super().check(place)
            return
        for name, harmless in _REFUSED[place.name].items():
            value = place.kwargs.get(name)
            if isinstance(value, (Const, Tensor, Array)) and not (
                isinstance(value, Const) and value.value == harmless
            ):
                yield self.report(
                    place,
                    f"`{words(place.node)}`: torch's translation of this function does not take `{name}`; strict "
                    f"tracing fails. {self.advice}",
                )
                return

    def outcome_of(self, place: Call) -> Outcome:
        """Non-strict tracing runs NumPy, which takes no number from data for an index."""
        open_index = any(isinstance(each, TensorScalar) for each in place.args)
        return _OF_DATA if place.name == "numpy.unravel_index" and open_index else self.outcome

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        place = report.place
        if isinstance(place, Call) and place.name == "numpy.unravel_index":
            return divided_by_sizes(place, context)
        return Refusal(
            "torch has no one function that does the same: write it with operators of torch, or compute it in `__init__`"
        )

    examples = (
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        kept = np.setdiff1d(np.arange(4), [1])
        return x[:, kept.tolist()]
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        kept = [column for column in range(4) if column != 1]
        return x[:, kept]
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * float(np.interp(0.5, [0.0, 1.0], [2.0, 4.0]))
""",
            good="""
import numpy as np
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = float(np.interp(0.5, [0.0, 1.0], [2.0, 4.0]))

    def forward(self, x):
        return x * self.scale
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        _, first = np.unique(np.array([3, 1, 3, 2]), return_index=True)
        return x[:, first]
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x[:, [1, 3, 0]]
""",
        ),
        Example(
            bad="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = np.array([0.5, 0.4, 0.3, 0.2])

    def forward(self, x):
        mean = self.mean
        if mean.dtype != np.float32:
            mean = mean.astype(np.float32)
        return x - mean.shape[0]
""",
            good="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.5, 0.4, 0.3, 0.2]))

    def forward(self, x):
        return x - self.mean
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        row, column = np.unravel_index(x.argmax().item(), x.shape)
        return x - row * column
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        number = x.argmax().item()
        row, column = number // x.shape[1], number % x.shape[1]
        return x - row * column
""",
            outcome=_OF_DATA,
        ),
    )
