"""Backward hooks of Modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Definition, Place
from exportlens.inference.values import ClassValue
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words

_HOOKS = ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook")


class BackwardHook(Rule):
    """A model registers a backward hook on a Module in `__init__`.

    ## What it does
    Finds `register_full_backward_hook` and relatives in `__init__`.

    ## Why it matters
    Strict tracing of a Module with backward hooks fails. A program for inference has no backward.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
    """

    code = "EXL612"
    name = "backward-hook"
    outcome = Outcome(FAILS, OK)
    no_fix = "whether training needs the hook is not provable: register it where the model is trained"
    places = (Definition,)
    examples = (
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.layer.register_full_backward_hook(lambda module, grads, outputs: None)

    def forward(self, x):
        return self.layer(x)
""",
            good="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def watch_gradients(self, hook):
        # For training only.
        self.layer.register_full_backward_hook(hook)

    def forward(self, x):
        return self.layer(x)
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Definition)
        if not isinstance(place.value, ClassValue):
            return
        for method in place.value.node.body:
            if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
                continue
            for statement in method.body:
                call = statement.value if isinstance(statement, ast.Expr) else None
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute)
                    and call.func.attr in _HOOKS
                ):
                    yield self.report(
                        place,
                        f"`{words(call)}` registers a backward hook: strict tracing fails. Register it for "
                        "training only.",
                        node=call,
                    )
