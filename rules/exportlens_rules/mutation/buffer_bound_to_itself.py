"""Buffers made by nn.Buffer that are bound to what an operator gives back of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.classes import class_order
from exportlens.inference.places import AttributeWrite, Place
from exportlens.inference.values import ClassValue, Instance, Tensor
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.state.registrations import detached_where_written
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.state_reads import converts, loaded
from exportlens_rules.reading import ancestors


class BufferBoundToItself(Rule):
    """A buffer that nn.Buffer made is bound to the tensor that an operator gave back unchanged.

    ## What it does
    Finds `self.table = self.table.to(x.device)` and `self.steps += 1` where the attribute was made by `nn.Buffer(...)`. Where nothing
    is to be converted, `.to()` gives back the very same tensor, as operators that work in place do.

    ## Why it matters
    Strict tracing meets the class of that tensor, `nn.Buffer`, where it expects a plain tensor, and fails. Buffers
    that `register_buffer` made, and new tensors, are fine.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Buffer.html
    """

    code = "EXL215"
    name = "buffer-bound-to-itself"
    outcome = Outcome(FAILS, OK)
    places = (AttributeWrite,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.arange(4.0))

    def forward(self, x):
        self.table = self.table.to(x.device)
        return x + self.table
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.arange(4.0))

    def forward(self, x):
        table = self.table.to(x.device)
        return x + table
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = nn.Buffer(torch.zeros(4))

    def forward(self, x):
        self.total += x.mean(0)
        return x - self.total
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = nn.Buffer(torch.zeros(4))

    def forward(self, x):
        self.total.add_(x.mean(0))
        return x - self.total
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeWrite)
        old = place.old
        if not isinstance(old, Tensor) or old.origin != "buffer" or not isinstance(place.owner, Instance):
            return
        if not place.augmented and not (_is_the_same(old, place.value) and _is_converted(place)):
            return
        if not _is_made_by_class(place.owner, place.attr):
            return
        yield self.report(
            place,
            f"`self.{place.attr}`, which nn.Buffer made, is bound to itself: strict tracing fails. "
            "Register it with `register_buffer`, or keep what it is converted to in a local variable.",
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, AttributeWrite)
        return detached_where_written(report.place, context)


def _is_the_same(old: Tensor, new: object) -> bool:
    """Whether `new` is what `.to()` and the like give back of `old`, of no other type as far as that is known."""
    return (
        isinstance(new, Tensor)
        and new.converted
        and new.root == old.root
        and (new.rank is None or new.rank == old.rank)
        and (new.dtype is None or old.dtype is None or new.dtype == old.dtype)
    )


def _is_converted(place: AttributeWrite) -> bool:
    """Whether what is bound is the very attribute, converted; a detached tensor is another one."""
    statement = next((each for each in ancestors(place) if isinstance(each, ast.Assign)), None)
    if statement is None or not isinstance(place.node, ast.Attribute):
        return False
    value = statement.value
    if not isinstance(value, ast.Call) or ast.unparse(value.func).endswith(".detach"):
        return False
    return converts(value, [ast.dump(loaded(place.node))])


def _is_made_by_class(owner: Instance, attr: str) -> bool:
    """Whether a class of the object binds the attribute to `nn.Buffer(...)`."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).rpartition(".")[2] == "Buffer"
        and any(isinstance(target, ast.Attribute) and target.attr == attr for target in node.targets)
        for cls in class_order(owner.cls)
        if isinstance(cls, ClassValue)
        for node in ast.walk(cls.node)
    )
