"""Functions of NumPy given a number that was read out of tensor data."""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.numpy_calls import FUNCTIONS
from exportlens.inference.places import Call, ItemRead, ItemWrite, Place
from exportlens.inference.values import Array, Sequence
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.arrays.numpy_arrays import torch_for_lists
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.numbers.math_calls import torch_for_math
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import numbers_in, words

_STRICT = Outcome(FAILS, OK)
_SIZES = Outcome(OK, FAILS)

# Measured on torch 2.13, function by function: NumPy does these with the operators of Python alone, which a symbolic
# number has.
_BY_OPERATORS = frozenset(
    {
        "abs", "absolute", "add", "argmax", "array", "asarray", "ceil", "concatenate", "cumsum", "divide", "floor", "full", "max", "mean",
        "median", "min", "multiply", "power", "prod", "square", "subtract", "sum", "trunc",
    }
)  # fmt: skip
# Strict tracing gives these to torch, which takes the number for a size.
_OF_SIZES = frozenset({"zeros", "ones", "empty"})


class NumpyOfNumber(Rule):
    """A function of NumPy is given what `.item()`, `.tolist()` or a size that depends on data returned.

    ## What it does
    Finds `np.sqrt(x.max().item())`, `np.clip(n, 0, 1)`, `np.array(lengths.tolist())` and the like, and items of
    arrays that are chosen by such a number or set to it.

    ## Why it matters
    While tracing such a number is a symbol. Strict tracing gives no symbol to a function of NumPy, and without it
    NumPy asks the symbol for a number, but where the operators of Python are all that it needs (`np.mean`, `np.ceil`).
    The function of torch of the same name takes the tensor itself.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#does-numpy-work-with-torch-compile
    """

    code = "EXL514"
    name = "numpy-of-number-from-data"
    outcome = Outcome(FAILS, FAILS)
    places = (Call, ItemRead, ItemWrite)
    callees = tuple(f"numpy.{name}" for name in sorted(FUNCTIONS))
    examples = (
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * np.sqrt(x.abs().max().item())
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * x.abs().max().sqrt()
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * np.mean([x.max().item(), x.min().item()])
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * (x.max() + x.min()) / 2
""",
            outcome=_STRICT,
        ),
        Example(
            bad="""
import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.zeros(x.argmax().item() + 1))
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return torch.zeros(x.argmax().item() + 1)
""",
            outcome=_SIZES,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, (ItemRead, ItemWrite)):
            if isinstance(place.owner, Array) and not place.owner.traced and _reads_symbol(place):
                yield self.report(
                    place,
                    f"`{words(place.node)}` gives a NumPy array a number that was read out of tensor data, which is a "
                    "symbol while tracing. Use a tensor.",
                )
            return
        assert isinstance(place, Call)
        if not any(numbers_in(value) for value in (*place.args, *place.kwargs.values())):
            return
        short = place.name.removeprefix("numpy.")
        yield self.report(
            place,
            f"`{words(place.node)}` gives NumPy a number that was read out of tensor data, which is a symbol while "
            "tracing. Use the function of torch on the tensor.",
            outcome=_STRICT if short in _BY_OPERATORS else _SIZES if short in _OF_SIZES else None,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        if not isinstance(report.place, Call):
            return Refusal("whether the number may stay a tensor in all that follows is for you to say")
        made = torch_for_math(report.place, context)
        if isinstance(made, Refusal):
            return torch_for_lists(report.place, context) or made
        return made


def _reads_symbol(place: ItemRead | ItemWrite) -> bool:
    key = place.key
    parts = [*key.items] if isinstance(key, Sequence) and key.items is not None else [key]
    if isinstance(place, ItemWrite):
        parts.append(place.value)
    return any(map(numbers_in, parts))
