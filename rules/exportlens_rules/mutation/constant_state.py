"""Tensors that a plain attribute holds, and that traced code changes by numbers alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Mutation, Place
from exportlens.inference.values import Const, Shape, Static, Tensor, Value, options
from exportlens.outcome import OK, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.state.registrations import register_written, written_attribute
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import ancestors, words


class ConstantState(Rule):
    """A tensor that a plain attribute holds changes while tracing: the program starts with what tracing made of it.

    ## What it does
    Finds in-place writes to a tensor that is an attribute of the model, no buffer and no Parameter, by nothing but numbers
    and other such tensors: `self.steps += 1`, `self.decay.mul_(0.9)`; and those that set a tensor out of which the
    next call reads a number: `p = int(self.ptr)`, `self.ptr[0] = (p + 1) % 8`.

    ## Why it matters
    Non-strict tracing computes with the model's own tensors where no input takes part, and so the write is done once by the
    export itself: a counter that has counted nothing starts at one. Strict tracing is right, and both are for buffers.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code = "EXL217"
    name = "constant-state"
    outcome = Outcome(OK, WRONG)
    places = (Mutation,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = torch.zeros(())

    def forward(self, x):
        self.steps += 1
        return x / self.steps
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()), persistent=False)

    def forward(self, x):
        self.steps += 1
        return x / self.steps
""",
            inputs="(torch.ones(2),)",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Mutation)
        if not all(_is_constant(option) for option in options(place.target)):
            return
        if place.how in _SETTING and _is_read_out_before(place) and _is_kept(place):
            yield self.report(
                place,
                f"`{words(place.node)}` sets what the next call reads a number out of, and that is no buffer: non-strict tracing reads "
                "the number itself, once and for ever. Register a buffer.",
            )
            return
        # What sets a tensor to the same value each time is done once more without a trace.
        if place.how in _SETTING or not _is_own(place.node) or not _is_kept(place):
            return
        if all(_is_number(each) or _is_constant(each) for each in place.operands):
            yield self.report(
                place,
                f"`{words(place.node)}` changes a tensor that no input takes part in, and that is no buffer: non-strict "
                "tracing does so itself, and the program starts with what it made. Register a buffer.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Mutation)
        return register_written(report.place, context)


_SETTING = frozenset({"zero_", "fill_", "copy_", "clamp_", "clamp_min_", "clamp_max_", "[]"})


def _is_constant(value: Value) -> bool:
    return isinstance(value, Tensor) and value.origin == "attribute"


def _is_number(value: Value) -> bool:
    return isinstance(value, (Const, Static)) or (isinstance(value, Shape) and not value.unbacked)


def _is_kept(place: Mutation) -> bool:
    """Whether `__init__` alone binds the attribute: what a call binds anew is made in the program."""
    written = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    owner = next((each for each in ancestors(place) if isinstance(each, ast.ClassDef)), None)
    if written is None or owner is None:
        return False
    attr = written.value.attr if isinstance(written.value, ast.Attribute) else written.attr
    binding = {
        method.name
        for method in owner.body
        if isinstance(method, ast.FunctionDef)
        for each in ast.walk(method)
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
        for part in ast.walk(target)
        if isinstance(part, ast.Attribute) and part.attr == attr and isinstance(part.ctx, ast.Store)
    }
    return binding == {"__init__"}


def _is_own(node: ast.AST) -> bool:
    """Whether an attribute of the model is written, by an operator or by a method."""
    written = (
        node.target
        if isinstance(node, ast.AugAssign)
        else getattr(getattr(node, "func", None), "value", None)
    )
    return _is_of_self(written)


def _is_of_self(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_read_out_before(place: Mutation) -> bool:
    """Whether the method reads a number out of the tensor, before it writes that for the next call: `int(self.ptr)`."""
    function = next(
        (each for each in ancestors(place) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))), None
    )
    written = written_attribute(place.node)
    if function is None or not _is_of_self(written):
        return False
    assert isinstance(written, ast.Attribute)
    uses = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Attribute) and each.attr == written.attr and _is_of_self(each)
    ]
    numbers = [one for each in ast.walk(function) if _is_of_self(one := _read_out(each))]
    first = min(uses, key=lambda each: (each.lineno, each.col_offset))
    return first.lineno < written.lineno and any(each is first for each in numbers)


def _read_out(node: ast.AST) -> ast.AST | None:
    """What `node` reads a number out of: `x` of `x.item()`, `int(x)`, `x[0].tolist()`."""
    if not isinstance(node, ast.Call):
        return None
    found: ast.AST | None = None
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
        found = node.func.value
    elif isinstance(node.func, ast.Name) and node.func.id in ("int", "float", "bool") and len(node.args) == 1:
        found = node.args[0]
    while isinstance(found, ast.Subscript):
        found = found.value
    return found
