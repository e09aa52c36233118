"""Numbers of NumPy's where Python needs to know them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import NumpyRead, Place
from exportlens.outcome import FAILS, OK, WRONG, Outcome
from exportlens.rewriting.arrays.numpy_numbers import python_for_numpy
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import ancestors, words

_PROMOTED = Outcome(WRONG, OK)


class NumpyNumber(Rule):
    """Traced code needs to know what NumPy computed from plain numbers, or what the model holds as NumPy data.

    ## What it does
    Finds `if`, `while`, ternaries, `and`, `or`, `not`, `bool()`, `any()` and `all()` on a number of NumPy's, and where
    it is looked up in a list or dict, given to `range`, `np.arange`, `round` or `math.floor`, or given to `str`:
    `if np.log2(n) > 3`, `self.layers[np.argmax(sizes)]`, `round(np.sqrt(n))`. `sorted()` of an array too, and a loop over `np.unique`.
    So does `.item()` of whole numbers, and `.tolist()` of floats. `assert` is fine, and so are most sizes that torch is given.

    ## Why it matters
    Strict tracing turns every number of NumPy's into a tensor, whose value it does not know: "Data-dependent branching".
    Non-strict tracing leaves NumPy alone. `math.log2(n)`, `int(...)` and `float(...)` are numbers of Python.
    Where the model or its file holds the number, torch's functions do not take it either (`F.leaky_relu(x, self.slope)`),
    nor do layers that were made with it (`nn.Dropout(np.float64(0.1))`), nor `x.view(n, self.size)` with all of its sizes.
    Beside a tensor of no dimensions (`loss.sum() / np.log2(n)`) such a tensor is float64, and so is the result, where eager keeps
    the tensor's own type.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#does-numpy-work-with-torch-compile
    """

    code = "EXL512"
    name = "numpy-number"
    left_to_python = True
    outcome = Outcome(FAILS, OK)
    places = (NumpyRead,)
    examples = (
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        if np.log2(x.shape[-1]) > 1:
            return x + 1
        return x
""",
            good="""
import math

from torch import nn


class M(nn.Module):
    def forward(self, x):
        if math.log2(x.shape[-1]) > 1:
            return x + 1
        return x
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = np.linspace(0.5, 1.0, 3)

    def forward(self, x):
        for scale in self.scales:
            if scale < 1:
                x = x + 1
        return x
""",
            good="""
import numpy as np
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = np.linspace(0.5, 1.0, 3).tolist()

    def forward(self, x):
        for scale in self.scales:
            if scale < 1:
                x = x + 1
        return x
""",
        ),
        Example(
            bad="""
import numpy as np
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = np.sqrt(0.04)

    def forward(self, x):
        return F.leaky_relu(x, self.slope)
""",
            good="""
import math

import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = math.sqrt(0.04)

    def forward(self, x):
        return F.leaky_relu(x, self.slope)
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = np.prod((2, 6))

    def forward(self, x):
        return x.view(1, self.size) + 1
""",
            good="""
import numpy as np
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = int(np.prod((2, 6)))

    def forward(self, x):
        return x.view(1, self.size) + 1
""",
        ),
        Example(
            bad="""
import numpy as np
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x.pow(2).sum() / np.log2(x.size(1))
""",
            good="""
import math

from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x.pow(2).sum() / math.log2(x.size(1))
""",
            outcome=_PROMOTED,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, NumpyRead)
        if place.use == "operand" or _is_asserted(place):
            return
        if place.use == "promoted":
            yield self.report(
                place,
                f"`{words(place.node)}` takes a float of NumPy's beside a tensor of no dimensions: strict tracing makes a float64 "
                "tensor of it, and of the result. Compute it with math.",
                outcome=_PROMOTED,
            )
            return
        yield self.report(
            place,
            f"`{words(place.node)}` {_USES[place.use]} a number of NumPy's: strict tracing takes it for a tensor and "
            "does not know its value. Compute it with math, or hold it as an int or a float.",
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, NumpyRead)
        return python_for_numpy(report.place, context)


def _is_asserted(place: NumpyRead) -> bool:
    """Whether the value itself is what an `assert` tests: strict tracing takes that into the program."""
    for node in ancestors(place):
        if isinstance(node, ast.Assert):
            test = node.test
            while isinstance(test, ast.BoolOp):
                test = test.values[-1]
            return test is place.node
    return False


_USES = {
    "argument": "is given",
    "layer": "was made with",
    "truth": "decides on",
    "in": "compares",
    "range": "counts to",
    "index": "looks up",
    "key": "looks up",
    "text": "writes out",
    "round": "rounds",
    "item": "takes out",
    "tolist": "takes out",
    "sorted": "sorts",
    "loop": "goes through",
}
