"""What a call takes out of what the model keeps, so that the next call finds something else there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call, ContainerWrite, Place
from exportlens.inference.values import Tensor, options
from exportlens.outcome import BAKED, FAILS, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.state.counted_iterators import counted_in_attribute
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.iterator_makers import is_traced_strictly, makers_of
from exportlens_rules.mutation.kept_holders import ADDING, called_with, is_emptied, is_path
from exportlens_rules.mutation.kept_names import under_one_name
from exportlens_rules.mutation.results import decides_result
from exportlens_rules.mutation.state_reads import parents
from exportlens_rules.reading import words

_TURNING = frozenset({"rotate", "reverse"})
_OF_ANY_ORDER = frozenset({"sum", "max", "min", "sorted", "any", "all", "set"})
_FROZEN = Outcome(BAKED, BAKED)
# Strict tracing knows `next` of few iterators, and `rotate` not at all (measured on torch 2.13).
_UNTRACED = Outcome(FAILS, BAKED)


class TakenState(Rule):
    """What each call takes from an iterator or a list of the model is frozen at export.

    ## What it does
    Finds `next(self.ids)` of an iterator that the model keeps, `self.schedule.pop(0)`, and `self.window.rotate(1)`, where what comes
    out of it decides what the call gives. What is only logged is fine, and so is what the same call has put there.

    ## Why it matters
    The iterator goes on, and the list gets shorter, once: while tracing. The exported program has the number that came out
    then, and gives it in each call. A buffer is part of the program, and its updates are too.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code = "EXL219"
    name = "taken-state"
    outcome = _FROZEN
    places = (Call, ContainerWrite)
    callees = ("builtins.next",)
    examples = (
        Example(
            bad="""
import itertools

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = itertools.count(1)

    def forward(self, x):
        return x / next(self.steps)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps += 1
        return x / self.steps
""",
        ),
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [1.0, 0.5, 0.25, 0.125, 0.0625]

    def forward(self, x):
        return x * self.scales.pop(0)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        self.scale *= 0.5
        return x * self.scale
""",
        ),
        Example(
            bad="""
import itertools

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.signs = itertools.cycle([1.0, -1.0])

    def forward(self, x):
        return x * next(self.signs)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sign", torch.tensor(-1.0))

    def forward(self, x):
        self.sign *= -1
        return x * self.sign
""",
            outcome=_UNTRACED,
        ),
        Example(
            bad="""
from collections import deque

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = deque([1.0, 2.0, 4.0])

    def forward(self, x):
        self.scales.rotate(1)
        return x * self.scales[0]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scales", torch.tensor([1.0, 2.0, 4.0]))

    def forward(self, x):
        self.scales.copy_(torch.roll(self.scales, 1))
        return x * self.scales[0]
""",
            outcome=_UNTRACED,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, Call):
            yield from self._of_iterator(place)
            return
        assert isinstance(place, ContainerWrite)
        function = None if place.site.function is None else place.site.function.node
        if place.anew or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        function, node = under_one_name(place, function)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return
        holder = node.func.value
        if place.how in _TURNING and _order_decides(place, function, node, holder):
            tensors = all(isinstance(each, Tensor) for each in options(place.value))
            strict = FAILS if place.how == "rotate" else WRONG if tensors else BAKED
            yield self.report(
                place,
                f"`{words(holder)}` has another order in each call: the exported program knows the one that it had while tracing. "
                "Keep what it holds in a buffer, and write it in place.",
                outcome=Outcome(strict, WRONG if tensors else BAKED),
            )
        elif place.how in ("pop", "popleft", "popitem") and _is_taken(place, function, node, holder):
            yield self.report(
                place,
                f"`{words(node)}` takes another item in each call: the exported program keeps the one that it got while tracing. "
                "Count in a buffer which one it is.",
            )

    def _of_iterator(self, place: Call) -> Iterator[Report]:
        node = place.node
        function = place.site.function
        if not isinstance(node, ast.Call) or not node.args or function is None:
            return
        makers = makers_of(place, node.args[0])
        if makers is None or not decides_result(place, node, function.node):
            return
        yield self.report(
            place,
            f"`{words(node)}` gives another value in each call: the exported program keeps the one that it got while tracing. "
            "Count in a buffer.",
            outcome=None if all(map(is_traced_strictly, makers)) else _UNTRACED,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        if isinstance(report.place, Call):
            return counted_in_attribute(report.place, context)
        return Refusal(
            "which item it is in each call has to be counted in a buffer, and what the items are kept in one tensor: how many calls "
            "there are is not known"
        )


def _is_taken(place: ContainerWrite, function: ast.AST, node: ast.Call, holder: ast.expr) -> bool:
    """Whether what comes out decides what the call gives, and was there before the call."""
    path = ast.dump(holder)
    functions = called_with(place, place.site.function.node if place.site.function is not None else function)
    if any(is_emptied(each, path) for each in functions):
        return False
    for each in [function, *functions[1:], *_other_methods(place)]:
        for added in _added(each, path):
            # Behind it in the same function it is for the next call: `k = self.ring.popleft(); self.ring.append(k)`.
            if each is not function or added.lineno < node.lineno:
                return False
    return decides_result(place, node, function)


def _other_methods(place: ContainerWrite) -> Iterator[ast.AST]:
    """The methods of the class that the call does not lead to by their names, as hooks are, and functions that its constructor makes."""
    function = place.site.function
    if function is None or function.owner is None:
        return
    for each in function.owner.node.body:
        if isinstance(each, ast.FunctionDef) and each.name != "__init__" and each is not function.node:
            yield each
        elif isinstance(each, ast.FunctionDef):
            for one in ast.walk(each):
                if isinstance(one, ast.Lambda) or (isinstance(one, ast.FunctionDef) and one is not each):
                    yield one


def _added(function: ast.AST, path: str) -> Iterator[ast.expr | ast.stmt]:
    """What puts something into the container."""
    for each in ast.walk(function):
        holder: ast.expr | None = None
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            holder = each.func.value if each.func.attr in ADDING else None
        elif isinstance(each, ast.AugAssign):
            holder = each.target
        elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            holder = each.value
        if holder is not None and is_path(holder, path):
            assert isinstance(each, (ast.expr, ast.stmt))
            yield each


def _order_decides(place: ContainerWrite, function: ast.AST, node: ast.Call, holder: ast.expr) -> bool:
    """Whether the call gives what depends on the order, which it changes for the next call, and does not change back."""
    path = ast.dump(holder)
    functions = called_with(place, place.site.function.node if place.site.function is not None else function)
    functions = [function, *functions[1:]]
    turned = [
        each
        for one in functions
        for each in ast.walk(one)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in _TURNING | {"sort"}
        and is_path(each.func.value, path)
    ]
    if len(turned) > 1 or any(is_emptied(each, path) for each in functions):
        return False
    written = any(True for each in functions for _ in _items_set(each, path))
    return any(
        _reads_order(each, parents(one), written) and decides_result(place, each, one)
        for one in functions
        for each in ast.walk(one)
        if isinstance(each, (ast.Attribute, ast.Name)) and each is not holder and ast.dump(each) == path
    )


def _items_set(function: ast.AST, path: str) -> Iterator[ast.Subscript]:
    for each in ast.walk(function):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store) and is_path(each.value, path):
            yield each


def _reads_order(node: ast.AST, around: dict[ast.AST, ast.AST], written: bool) -> bool:
    """Whether what reads the list asks for more than how much, or what, is in it; where items are `written`, the order tells which."""
    use = around[node]
    if isinstance(use, ast.Call):
        name = use.func.id if isinstance(use.func, ast.Name) else ""
        return name != "len" and (written or name not in _OF_ANY_ORDER)
    if isinstance(use, ast.Compare):
        return not any(isinstance(op, (ast.In, ast.NotIn)) for op in use.ops)
    return not isinstance(use, ast.Attribute) and not (
        isinstance(use, ast.Subscript) and isinstance(use.ctx, ast.Store)
    )
