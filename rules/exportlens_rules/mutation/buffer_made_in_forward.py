"""Buffers that are None, or not there, when the model is exported, and that traced code makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.classes import class_order
from exportlens.inference.places import AttributeWrite, Call, Place
from exportlens.inference.values import ClassValue, Const, Instance, Tensor, Unknown
from exportlens.outcome import OK, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.state.made_buffers import attribute_for_buffer, is_none_by_default
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import words


class BufferMadeInForward(Rule):
    """A buffer of the exported model becomes a tensor while tracing, which it was not before.

    ## What it does
    Finds `self.mask = ...` and `self.register_buffer("mask", ...)` in traced code of the model that is exported, where the
    constructor registers `mask` as None or not at all. A warning: a model that ran once before it is exported has the
    tensor.

    ## Why it matters
    Non-strict tracing counts the new buffer as if it had been there: the program copies it into the caller's first input,
    or fails to when it runs, as the sizes do not fit. Strict tracing is right.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code = "EXL216"
    name = "buffer-made-in-forward"
    outcome = Outcome(OK, WRONG)
    decided_here = False
    places = (AttributeWrite, Call)
    callees = ("torch.nn.Module.register_buffer",)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", None)

    def forward(self, x):
        if self.steps is None:
            self.steps = torch.arange(x.shape[0], dtype=x.dtype)
        return x + self.steps[:, None]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = None

    def forward(self, x):
        if self.steps is None:
            self.steps = torch.arange(x.shape[0], dtype=x.dtype)
        return x + self.steps[:, None]
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        if not hasattr(self, "steps"):
            self.register_buffer("steps", torch.arange(x.shape[0], dtype=x.dtype))
        return x + self.steps[:, None]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + torch.arange(x.shape[0], dtype=x.dtype)[:, None]
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        made = _made(place)
        if made is not None:
            yield self.report(
                place,
                f"`{words(place.node)}` makes the buffer `{made}` while tracing: non-strict export copies it into the caller's first "
                "input. Make it in the constructor, or keep it in a plain attribute.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        made = _made(report.place)
        return None if made is None else attribute_for_buffer(report.place, made, context)


def _made(place: Place) -> str | None:
    """The buffer of the exported model that a place makes a tensor; None where it does not."""
    if isinstance(place, AttributeWrite):
        owner, attr, value = place.owner, place.attr, place.value
        before = isinstance(place.old, Unknown) or (isinstance(place.old, Const) and place.old.value is None)
    else:
        assert isinstance(place, Call)
        name = place.argument(0, "name")
        tensor = place.argument(1, "tensor")
        if place.receiver is None or tensor is None or not isinstance(name, Const):
            return None
        owner, attr, value = place.receiver, str(name.value), tensor
        before = True
    if not before or not isinstance(value, Tensor) or not isinstance(owner, Instance):
        return None
    if not isinstance(owner.cls, ClassValue) or place.site.entry is None:
        return None
    if place.site.entry.partition(".")[0] != owner.cls.name:
        return None
    registered = _registered(owner.cls, attr)
    if isinstance(place, AttributeWrite):
        return attr if registered == [None] else None
    return attr if all(each is None for each in registered) else None


def _registered(cls: ClassValue, attr: str) -> list[object]:
    """What the constructors of a class register as the buffer `attr`: None, or the expression."""
    found: list[object] = []
    for each in class_order(cls):
        body = each.node.body if isinstance(each, ClassValue) else []
        constructor = next(
            (one for one in body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None
        )
        if constructor is None:
            continue
        for call in ast.walk(constructor):
            if isinstance(call, ast.Assign) and f"self.{attr}" in map(ast.unparse, call.targets):
                found.append(call.value)  # a plain attribute where it is None
            if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "register_buffer":
                continue
            given = [*call.args, *(key.value for key in call.keywords if key.arg in ("name", "tensor"))]
            if len(given) > 1 and getattr(given[0], "value", None) == attr:
                found.append(None if is_none_by_default(given[1], constructor) else given[1])
    return found
