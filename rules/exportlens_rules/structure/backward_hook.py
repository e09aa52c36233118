"""Backward hooks of Modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.gradient_hooks import GRADIENT_HOOKS, HOOKED_CALL
from exportlens.inference.places import Call, Definition, Place
from exportlens.inference.values import ClassValue
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class BackwardHook(Rule):
    """A model registers a backward hook on a Module in `__init__`.

    ## What it does
    Finds calls of Modules that `register_full_backward_hook` or a relative gave a hook in `__init__`, also within an
    `nn.Sequential`, and models that give themselves one.

    ## Why it matters
    The call builds what runs the hook in the backward pass, which strict tracing does not support: "Module-level backwards
    hooks require compiled autograd". A program for inference has no backward. Hooks of parameters are fine.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
    """

    code = "EXL612"
    name = "backward-hook"
    outcome = Outcome(FAILS, OK)
    no_fix = "whether training needs the hook is not provable: register it where the model is trained"
    places = (Definition, Call)
    callees = (HOOKED_CALL,)
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
        if isinstance(place, Call):
            yield self.report(
                place,
                f"`{words(place.node)}` calls a Module that has a backward hook: strict tracing fails. Register it for training only.",
            )
        elif isinstance(place, Definition) and isinstance(place.value, ClassValue):
            for call in _registered_by_itself(place.value):
                yield self.report(
                    place,
                    f"`{words(call)}` registers a backward hook: strict tracing fails. Register it for training only.",
                    node=call,
                )


def _registered_by_itself(cls: ClassValue) -> Iterator[ast.Call]:
    """The calls in a constructor that give the object a hook that is made."""
    for method in cls.node.body:
        if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
            continue
        for statement in method.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in GRADIENT_HOOKS
                and isinstance(call.func.value, ast.Name)
                and call.func.value.id == "self"
            ):
                yield call
