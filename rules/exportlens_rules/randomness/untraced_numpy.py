"""Functions of NumPy that strict tracing cannot translate."""

from __future__ import annotations

import importlib.resources
import json

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


def _names() -> list[str]:
    """What torch says that it has no translation of (scripts/generate_numpy_functions.py)."""
    text = importlib.resources.files(__package__).joinpath("untraced_numpy.json").read_text(encoding="utf-8")
    names: list[str] = json.loads(text)["names"]
    return names


class UntracedNumpy(CallOf):
    """A function of NumPy that torch has no translation of.

    ## What it does
    Finds `np.interp`, `np.setdiff1d`, `np.ndindex` and all other functions of NumPy in traced code that torch does not
    know, whatever they are given.

    ## Why it matters
    Strict tracing translates NumPy into torch, function by function, and fails where there is none, even on constants.
    Non-strict tracing just runs NumPy on what is no tensor.

    ## References
    - https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#which-numpy-features-does-torch-compile-support
    """

    code = "EXL511"
    name = "untraced-numpy"
    outcome = Outcome(FAILS, OK)
    callees = tuple(f"numpy.{name}" for name in _names())
    wrong = "has no translation in torch: strict tracing fails."
    advice = "Compute it in __init__, or with torch."
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
    )
