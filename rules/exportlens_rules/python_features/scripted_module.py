"""Modules compiled by TorchScript inside of a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.inference.places import Definition, Place
from exportlens.inference.values import ClassValue
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example, Report, Rule
from exportlens.source.walking import walk

from exportlens_rules.reading import base_names, words

_TRACED = Outcome(FAILS, OK)


class ScriptedModule(Rule):
    """A model holds Modules that TorchScript compiled.

    ## What it does
    Finds `torch.jit.script(module)` and `torch.jit.trace(...)` bound to an attribute in `__init__`, and
    subclasses of `torch.jit.ScriptModule`. Functions decorated with `torch.jit.script` are fine.

    ## Why it matters
    torch.export traces Python, and a scripted Module has none left.

    ## References
    - https://docs.pytorch.org/docs/stable/jit.html
    """

    code = "EXL325"
    name = "scripted-module"
    outcome = Outcome(FAILS, FAILS)
    no_fix = (
        "the source of what was compiled is elsewhere: build the model of the Modules that were scripted, and "
        "load its state_dict"
    )
    places = (Definition,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class Scale(nn.Module):
    def forward(self, x):
        return x * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.jit.script(Scale())

    def forward(self, x):
        return self.scale(x)
""",
            good="""
from torch import nn


class Scale(nn.Module):
    def forward(self, x):
        return x * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()

    def forward(self, x):
        return self.scale(x)
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.jit.trace(nn.Linear(4, 4), torch.randn(3, 4))

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
            outcome=_TRACED,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Definition)
        if not isinstance(place.value, ClassValue):
            return
        node = place.value.node
        if "torch.jit.ScriptModule" in set(base_names(place.value)):
            yield self.report(
                place,
                f"`{node.name}` is a ScriptModule: torch.export does not take it. Derive from "
                "torch.nn.Module.",
                node=node.bases[0] if node.bases else node,
            )
        for method in node.body:
            made = "torch.jit." in place.site.chunk.text
            if made and isinstance(method, ast.FunctionDef) and method.name == "__init__":
                yield from self._made_in(method, place)

    def _made_in(self, method: ast.FunctionDef, place: Definition) -> Iterator[Report]:
        for statement in walk(method):
            if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
                continue
            called = ast.unparse(statement.value.func)
            target = statement.targets[0]
            if called not in ("torch.jit.script", "torch.jit.trace") or not isinstance(target, ast.Attribute):
                continue
            if called == "torch.jit.script" and not (
                statement.value.args and isinstance(statement.value.args[0], ast.Call)
            ):
                continue
            yield self.report(
                place,
                f"`{words(statement.value)}` compiles a Module with TorchScript: torch.export cannot trace "
                "into it. "
                "Keep the Module as it is.",
                node=statement.value,
                outcome=_TRACED if called == "torch.jit.trace" else None,
            )
