"""Context managers that strict tracing refuses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.classes import class_attribute
from exportlens.inference.places import Call, Place, With
from exportlens.inference.values import ClassValue, Function, Instance, Sequence, Value
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.contexts import (
    device_of_each,
    entered_by_calls,
    entered_in_eager_only,
    stacked_contexts,
)
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rule import Example, Report, Rule

from exportlens_rules.reading import class_name, words

# Measured on torch 2.13: strict tracing fails, non-strict tracing enters them while tracing.
REFUSED = frozenset(
    {
        "contextlib.redirect_stderr",
        "contextlib.redirect_stdout",
        "threading.Condition",
        "threading.Lock",
        "threading.RLock",
        "threading.Semaphore",
        "_thread.lock",
        "multiprocessing.Lock",
        "tempfile.TemporaryDirectory",
        "tempfile.NamedTemporaryFile",
        "torch.autograd.graph.save_on_cpu",
        "torch.autograd.graph.saved_tensors_hooks",
        "torch.autograd.profiler.emit_itt",
        "torch.autograd.profiler.emit_nvtx",
        "torch.cuda.device_of",
        "torch.device",
    }
)


class UnsupportedContextManager(Rule):
    """A lock, a redirection, a default device, what was made before, or what an ExitStack is given, is entered while tracing.

    ## What it does
    Finds `with` on locks of the threading module, `redirect_stdout`, `torch.device(...)` and the like,
    `stack.enter_context(...)` of a `contextlib.ExitStack`, and `with self.context` where an object of a class of one's own
    was made by the constructor or at module level.

    ## Why it matters
    Strict tracing fails; in non-strict mode they are entered while tracing, and never by the program.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL307"
    name = "unsupported-context-manager"
    outcome = Outcome(FAILS, OK)
    places = (With, Call)
    callees = ("contextlib.ExitStack.enter_context",)
    examples = (
        Example(
            bad="""
import threading

from torch import nn

LOCK = threading.Lock()


class M(nn.Module):
    def forward(self, x):
        with LOCK:
            return x + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
        Example(
            bad="""
import contextlib

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            return x + 1
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            return x + 1
""",
        ),
        Example(
            bad="""
from torch import nn


class Depth:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = Depth()

    def forward(self, x):
        with self.depth:
            return x + 1
""",
            good="""
from torch import nn


class Depth:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class M(nn.Module):
    def forward(self, x):
        with Depth():
            return x + 1
""",
        ),
        Example(
            bad="""
import contextlib
import io

from torch import nn


class M(nn.Module):
    def forward(self, x):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            print("quiet")
        return x + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
        Example(
            bad="""
import threading

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def forward(self, x):
        with self.lock:
            return x + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, Call):
            if _is_followed(place):
                return
            yield self.report(
                place,
                f"`{words(place.node)}` enters a context by a call that strict tracing does not know. Use `with` for it.",
            )
            return
        assert isinstance(place, With)
        name = _name(place)
        if name in REFUSED:
            yield self.report(
                place,
                f"`with {words(place.node)}` ({name}) is not part of a program: strict tracing fails. Use "
                "it around "
                "the model, not inside.",
            )
        elif _was_made_before(place.manager):
            yield self.report(
                place,
                f"`with {words(place.node)}` enters an object of `{class_name(place.manager)}` that was made before: strict "
                "tracing enters only what traced code makes. Make it there, or enter it around the model.",
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        place = report.place
        if isinstance(place, Call):
            return stacked_contexts(place, context)
        assert isinstance(place, With)
        name = _name(place)
        if name == "torch.device":
            return device_of_each(place, context)
        if name == "torch.cuda.device_of":
            return Refusal(
                "what is made inside on the current device is not provable: give each tensor its device"
            )
        if name.startswith("tempfile."):
            return Refusal("a program writes no files: make them where the model is called")
        return entered_in_eager_only(place, context) if name in REFUSED else entered_by_calls(place, context)


def _is_followed(place: Call) -> bool:
    """Whether an ExitStack enters what strict tracing follows there: an object of one's own class that traced code makes, or a
    generator."""
    entered = place.argument(0, "cm")
    if isinstance(entered, Sequence):
        return entered.kind == "generator"
    return isinstance(entered, Instance) and entered.traced and isinstance(entered.cls, ClassValue)


def _name(place: With) -> str:
    name = place.name or class_name(place.manager) or _bound_to(place)
    return "torch.device" if name.startswith("device:") else name


def _was_made_before(manager: Value) -> bool:
    """Whether a context manager of one's own class was made by the constructor or at module level."""
    return (
        isinstance(manager, Instance)
        and not manager.traced
        and isinstance(manager.cls, ClassValue)
        and isinstance(class_attribute(manager.cls, "__enter__")[0], Function)
    )


def _bound_to(place: With) -> str:
    """The class that made a global or an attribute of the model: `LOCK = threading.Lock()` gives "threading.Lock"."""
    node = place.node
    made: list[ast.stmt] = []
    if isinstance(node, ast.Name):
        made = [statement for _, statement in place.site.scope.bindings.get(node.id, [])]
    elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        made = [
            each
            for statement in place.site.chunk.body
            for each in ast.walk(statement)
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == f"self.{node.attr}"
        ]
    statement = made[-1] if made else None
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func)
    return ""
