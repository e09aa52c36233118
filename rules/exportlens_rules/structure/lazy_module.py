"""Lazy modules that are not initialised before the export."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Definition, Place
from exportlens.inference.values import ClassValue
from exportlens.outcome import FAILS, WRONG, Outcome
from exportlens.rule import Example, Report, Rule
from exportlens.source.walking import walk

from exportlens_rules.reading import words


class LazyModule(Rule):
    """A lazy layer finds its size on the first call.

    ## What it does
    Finds `nn.LazyLinear`, `nn.LazyConv2d` and the like in `__init__` of a model.

    ## Why it matters
    If the first call is the export, its parameters do not exist yet: non-strict tracing fails, strict
    tracing exports other weights than eager has. Call the model once before the export.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.modules.lazy.LazyModuleMixin.html
    """

    code = "EXL610"
    name = "lazy-module"
    outcome = Outcome(WRONG, FAILS)
    no_fix = (
        "the size is only known at the first call: call the model once before the export, or use the layer that "
        "takes the size"
    )
    places = (Definition,)
    examples = (
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LazyLinear(4)

    def forward(self, x):
        return self.layer(x)
""",
            good="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Definition)
        if not isinstance(place.value, ClassValue) or "nn.Lazy" not in place.site.chunk.text:
            return
        for method in place.value.node.body:
            if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
                continue
            for call in walk(method):
                if isinstance(call, ast.Call) and ast.unparse(call.func).startswith(
                    ("nn.Lazy", "torch.nn.Lazy")
                ):
                    yield self.report(
                        place,
                        f"`{words(call)}` has no weights before its first call: call the model once before "
                        "the export, "
                        "or give the size.",
                        node=call,
                    )
