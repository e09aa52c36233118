"""NumPy on traced tensors."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, Conversion, Place
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.arrays.numpy_arrays import torch_for_numpy
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import is_tensor, words

# They ask the tensor for its shape or its type.
_ASKING = frozenset({"numpy.shape", "numpy.ndim", "numpy.size", "numpy.isscalar"})

# Methods of functions: `np.maximum.accumulate(t)`.
_OF_FUNCTIONS = frozenset({"accumulate", "reduce", "reduceat", "outer", "at"})


class NumpyOfTensor(Rule):
    """A traced tensor becomes a NumPy array.

    ## What it does
    Finds `t.numpy()`, `np.asarray(t)` and functions of NumPy that are given traced tensors. NumPy on shapes
    and on configuration is fine.

    ## Why it matters
    Strict tracing translates NumPy into torch. Non-strict tracing runs it, on a tensor without data, and
    fails.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#does-numpy-work-with-torch-compile
    """

    code = "EXL502"
    name = "numpy-of-tensor"
    outcome = Outcome(OK, FAILS)
    places = (Conversion, Call)
    callees = ("numpy.*",)
    examples = (
        Example(
            bad="""
def forward(self, x):
    values = x.detach().cpu().numpy()
    return torch.from_numpy(values * 2)
""",
            good="""
def forward(self, x):
    return x.detach() * 2
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + np.sin(x)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + torch.sin(x)
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x - np.maximum.accumulate(x, axis=1)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x - torch.cummax(x, dim=1).values
""",
            outcome=Outcome(FAILS, FAILS),
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, (Call, Conversion))
        if isinstance(place, Conversion):
            if place.to == "numpy" and is_tensor(place.value):
                yield self.report(place, self._message(place))
        elif place.name not in _ASKING and any(map(is_tensor, place.args)):
            # `np.maximum.accumulate`: strict tracing knows no methods of functions.
            outcome = Outcome(FAILS, FAILS) if place.name.rpartition(".")[2] in _OF_FUNCTIONS else None
            yield self.report(place, self._message(place), outcome=outcome)

    def _message(self, place: Place) -> str:
        return (
            f"`{words(place.node)}` makes a NumPy array of a traced tensor, which has no data: non-strict "
            "tracing fails. "
            "Use the same function of torch."
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, (Call, Conversion))
        return torch_for_numpy(report.place, context)
