"""Tensors of the model that are replaced from call to call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeWrite, Place
from exportlens.inference.values import (
    ClassValue,
    Const,
    Instance,
    Mapping_,
    Sequence,
    Shape,
    Tensor,
    Value,
    options,
)
from exportlens.outcome import BAKED, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.state.begun_before_calls import begun_by_methods
from exportlens.rewriting.state.named_attributes import copied_by_name
from exportlens.rewriting.state.numbers_replaced import number_as_tensor
from exportlens.rewriting.state.plain_writes import written_plainly
from exportlens.rewriting.state.recurrent_state import copy_state_of_layer
from exportlens.rewriting.state.registrations import copy_into_state
from exportlens.rewriting.state.taken_apart import taken_apart
from exportlens.rewriting.state.unbegun_state import begun_by_the_first_call, is_one_float
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.begun_before import is_begun_before_calls
from exportlens_rules.mutation.begun_elsewhere import (
    is_begun_by_another,
    is_read_in_call,
    is_set_back,
    is_written_above,
)
from exportlens_rules.mutation.computed_state import (
    holds_the_same,
    is_computed_from_itself,
    is_handed_back,
    parts_of,
)
from exportlens_rules.mutation.first_values import (
    is_begun_and_added_to,
    is_begun_by_name,
    is_kept_from_first_call,
    is_left_to_later_calls,
)
from exportlens_rules.mutation.named_state import is_carried_by_name, named_statement
from exportlens_rules.mutation.read_by_others import is_read_by_others, is_read_by_others_by_name
from exportlens_rules.mutation.state_reads import (
    converts,
    loaded,
    read_before,
    reads,
    renewed_otherwise,
    resets_by_kept_names,
)
from exportlens_rules.mutation.turned_state import BUFFER, is_turned, of_buffer
from exportlens_rules.mutation.written_from_first_call import is_written_from_first_call
from exportlens_rules.reading import ancestors, words

_KEPT = frozenset({"attribute", "outside", "constant", "buffer"})
# Who starts from a number sets it back to that number before each sample: so does the program.
_NUMBER = Outcome(BAKED, BAKED)

OF_CLASS = "the class keeps it for all of its objects: whether each shall have its own is for you to say. Keep it in a buffer of the model"


class TensorState(Rule):
    """State that is carried from one call to the next in an attribute is lost.

    ## What it does
    Finds `self.state = f(self.state)` and `out, self.state = self.rnn(x, self.state)`, and a tensor that is bound
    to an attribute whose old value the function has read before, under whatever name: what one call leaves, the
    next one reads. So are numbers of tensors that the first call computes of its inputs, for all later calls:
    `if self.scale is None: self.scale = x.std()`; and so is what only later calls read, as a counter or a state of the model decides:
    `y = x if self.steps == 0 else x - self.last`. For a plain attribute the update is lost in both modes, for a buffer in strict mode. So is what
    a method begins before the model runs, as `reset` does, and each call reads and binds anew. State that a number starts, as the
    potential of a spiking neuron, is told as a remark: models set it back before each sample. So is a dict of such tensors that is made anew.
    Attributes that are only set, to be read later in the same call, are fine, and so are tables that
    are made anew where they are too short.

    ## Why it matters
    The program is traced once. Binding a new tensor to a Python attribute is no operation of the program, so
    the second call starts from the state of the first, and nothing says so. Writing in place,
    `self.state.copy_(...)`, is one.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL206"
    name = "tensor-state"
    outcome = Outcome(WRONG, WRONG)
    places = (AttributeWrite,)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(4)

    def forward(self, x):
        self.state = self.state * 0.5 + x[0]
        return x + self.state
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x):
        self.state.copy_(self.state * 0.5 + x[0])
        return x + self.state
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x):
        self.state = self.state * 0.5 + x[0]
        return x + self.state
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x):
        self.state.mul_(0.5).add_(x[0])
        return x + self.state
""",
            outcome=BUFFER,
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = 0.0

    def forward(self, x):
        self.level = self.level * 0.5 + x.mean(0)
        return torch.relu(self.level)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.zeros(4))

    def forward(self, x):
        self.level.copy_(self.level * 0.5 + x.mean(0))
        return torch.relu(self.level)
""",
            outcome=_NUMBER,
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        if self.last is None:
            self.last = torch.zeros(4)
        change = x - self.last
        self.last = x.mean(0)
        return change
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x):
        change = x - self.last
        self.last.copy_(x.mean(0))
        return change
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeWrite)
        reports = list(self._reports(place))
        yield from reports
        if not reports and _begins_as_state(place) and is_left_to_later_calls(place):
            advice = f"Write in place: `self.{place.attr}.copy_(...)`, with a registered buffer."
            if place.began in (None, Const(None)):
                advice = "Register a buffer of its final shape in `__init__`, and write it in place."
            yield self.report(
                place,
                f"`self.{place.attr}` is bound to a new tensor that later calls read, on a way that the first one does not go: the "
                f"exported program never does. {advice}",
            )

    def _reports(self, place: AttributeWrite) -> Iterator[Report]:
        if not isinstance(place.owner, (Instance, ClassValue)):
            return
        if isinstance(place.owner, Instance) and place.owner.traced:
            return  # what traced code made starts anew in each call
        if is_kept_from_first_call(place):
            yield self.report(
                place,
                f"`self.{place.attr}` is bound to what the first call computes of its inputs: the exported program computes it anew "
                "in each call. Register a buffer of its final shape in `__init__`, and write it in place.",
            )
            return
        if is_written_from_first_call(place):
            yield self.report(
                place,
                f"`self.{place.attr}` is made by the first call, and written in place by each: the exported program makes it anew in "
                "each call. Register a buffer of its final shape in `__init__`, and begin it in place.",
            )
            return
        begun = is_begun_by_another(place)
        if is_begun_and_added_to(place) or (begun and place.augmented and _is_tensor(place.value)):
            yield self.report(
                place,
                f"`self.{place.attr}` is made by the first call, and added to by each: the exported program makes it anew in each "
                "call. Register a buffer of its final shape in `__init__`, and add to it in place.",
            )
            return
        if _replaces_number(place):
            computed = (
                "computed from what it was"
                if place.augmented or is_computed_from_itself(place)
                else "that the next call reads"
            )
            yield self.report(
                place,
                f"`self.{place.attr}` becomes a tensor {computed}: the exported program starts each call from the number that it "
                f"was first. Register a buffer and write in place: `self.{place.attr}.copy_(...)`.",
                outcome=_NUMBER,
            )
            return
        if is_begun_before_calls(place):
            yield self.report(
                place,
                f"`self.{place.attr}` is bound to new tensors that the next call reads, and another method begins it before the model "
                "runs: the exported program starts each call from what it held while tracing. Register buffers, and write them in place.",
            )
            return
        if place.augmented or place.old is None:
            return
        if is_turned(place):
            buffer = isinstance(place.began, Tensor) and place.began.origin == "buffer"
            yield self.report(
                place,
                f"`self.{place.attr}` is bound to a tensor of another value, after the call has read what it was: the exported program "
                f"forgets it after each call. Write in place: `self.{place.attr}.copy_(...)`, with a registered buffer.",
                outcome=of_buffer(place) if buffer else None,
            )
            return
        parts = list(parts_of(place.value))
        if isinstance(place.value, Sequence) and place.value.kind == "tuple":
            # A count beside the tensors, as in `Stats(mean, std, n)`.
            parts = [part for part in parts if not isinstance(part, (Const, Shape))] or parts
        if not all(isinstance(part, Tensor) and part.origin != "constant" for part in parts):
            return
        of_list = isinstance(place.value, Sequence) and place.value.kind == "list"
        several = of_list or isinstance(place.value, Mapping_)
        if several and holds_the_same(place):
            return
        if (several or Const(None) in (place.old, place.began)) and resets_by_kept_names(place.owner):
            return
        origins = {part.origin if isinstance(part, Tensor) else "" for part in parts_of(place.old)}
        named = named_statement(place)
        if named is not None:
            none = place.old == Const(None) == place.began
            carried = (
                is_carried_by_name(place, *named)
                or is_read_by_others_by_name(place, *named)
                or is_begun_by_name(place, named[1])
            )
            if (none or origins <= _KEPT) and carried:
                yield self.report(
                    place,
                    f"`{words(named[0])}` binds the attribute to a new tensor that the next call reads: the exported "
                    "program forgets it after each call. Write in place, to a registered buffer.",
                    outcome=of_buffer(place) if origins == {"buffer"} else None,
                )
            return
        kept = origins <= _KEPT or begun or _was_only_converted(place)
        if not (kept and is_computed_from_itself(place)):
            if (
                not _is_carried(place, begun)
                and not _is_renewed(place)
                and (
                    holds_the_same(place) or resets_by_kept_names(place.owner) or not is_read_by_others(place)
                )
            ):
                return
            origins = {
                part.origin if isinstance(part, Tensor) else "" for part in parts_of(place.began or place.old)
            }
        computed = (
            "computed from what it was" if is_computed_from_itself(place) else "that the next call reads"
        )
        advice = f"Write in place: `self.{place.attr}.copy_(...)`, with a registered buffer."
        if place.began == Const(None):
            advice = "Register a buffer of its final shape in `__init__`, and write it in place."
        elif isinstance(place.value, Mapping_):
            advice = "Register a buffer for each of them, and write those in place."
        elif of_list:
            advice = "Keep one registered buffer, with a dimension for the items, and write it in place."
        yield self.report(
            place,
            f"`self.{place.attr}` is bound to {'new tensors' if several else 'a new tensor'} {computed}: the exported program "
            f"forgets {'them' if several else 'it'} after each call. {advice}",
            outcome=of_buffer(place) if origins == {"buffer"} else None,
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, AttributeWrite)
        if isinstance(report.place.owner, ClassValue):
            return Refusal(OF_CLASS)
        fix = self._fix(report.place, context)
        if isinstance(fix, Refusal) and not report.place.augmented:
            several = any(isinstance(each, Sequence) for each in options(report.place.value))
            begun = begun_by_methods(report.place, several, context)
            return fix if begun is None else begun
        return fix

    def _fix(self, place: AttributeWrite, context: RewriteContext) -> Fix | Refusal | None:
        named = named_statement(place)
        if named is not None:
            if named[1].attr is not None:
                return written_plainly(place, context)
            return copied_by_name(place, context)
        if _has_company(place):
            fix = copy_state_of_layer(place, context)
            if not isinstance(fix, Refusal):
                return fix
        if _replaces_number(place):
            return number_as_tensor(place, context)
        if place.augmented:
            return begun_by_the_first_call(place, context)
        if any(isinstance(each, Mapping_) for each in options(place.value)):
            return taken_apart(place, context)
        fix = copy_into_state(place, context)
        if isinstance(fix, Refusal) and any(isinstance(each, Sequence) for each in options(place.value)):
            apart = taken_apart(place, context)
            return fix if isinstance(apart, Refusal) else apart
        if isinstance(fix, Refusal) and place.began in (None, Const(None)):
            other = begun_by_the_first_call(place, context)
            # What is known to be one number, or of which sizes, is refused for what stands in the way of it.
            known = is_one_float(place.value) or place.attr in context.state_in_sizes()
            return fix if isinstance(other, Refusal) and not known else other
        return fix


def _begins_as_state(place: AttributeWrite) -> bool:
    """Whether a tensor is bound where there was a tensor of the model, or nothing."""
    began = [Const(None)] if place.began is None else [*parts_of(place.began)]
    kept = all(each == Const(None) or (isinstance(each, Tensor) and each.origin in _KEPT) for each in began)
    return kept and all(
        isinstance(each, Tensor) and each.origin != "constant" for each in parts_of(place.value)
    )


def _replaces_number(place: AttributeWrite) -> bool:
    """Whether a tensor, computed of the number that the attribute begins with or read by the next call, takes the number's place."""
    if place.began is None or not _is_number(place.began):
        return False
    if not all(isinstance(part, Tensor) and part.origin != "constant" for part in parts_of(place.value)):
        return False
    carried = place.augmented or is_computed_from_itself(place)
    return (carried or _is_read_before(place)) and _is_number_of_calls(place)


def _is_read_before(place: AttributeWrite) -> bool:
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    return (
        statement is not None
        and target is not None
        and not place.elsewhere
        and function is not None
        and isinstance(function.node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and read_before(function.node, statement, target)
    )


def _is_number_of_calls(place: AttributeWrite) -> bool:
    """Whether the number that becomes a tensor is read for more than to compute the next one, and no call sets it back."""
    if is_written_above(place) or is_set_back(place):
        return False
    return _is_read_elsewhere(place) or (not place.elsewhere and is_read_in_call(place))


def _is_tensor(value: Value) -> bool:
    return all(isinstance(each, Tensor) for each in options(value))


def _is_carried(place: AttributeWrite, begun: bool) -> bool:
    """Whether the function reads what the last call left, before it writes what the next call finds. Where the call has bound the
    attribute before, it has only `begun` it where there was none yet."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    missing = place.began is None and function is not None and _asks_for(function.node, place.attr)
    if (
        (place.elsewhere and not begun)
        or (place.began is None and not missing and not begun)
        or target is None
        or statement is None
        or function is None
        or not isinstance(function.node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ):
        return False
    began = [Const(None)] if place.began is None else [*parts_of(place.began)]
    empty = isinstance(place.began, Sequence) and place.began.items == []
    if (
        began != [Const(None)]
        and not empty
        and not all(isinstance(part, Tensor) and part.origin in _KEPT for part in began)
    ):
        return False
    path = [ast.dump(loaded(target))]
    if is_handed_back(place, statement.value, path):
        return False
    if reads(statement.value, path) and not is_computed_from_itself(place):
        # The same tensor again, moved, converted or made anew where it is too short.
        return False
    return read_before(function.node, statement, target)


def _asks_for(function: ast.AST, attr: str) -> bool:
    """Whether `function` asks if there is such an attribute, as the first call makes it."""
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id == "hasattr"
        and isinstance(each.args[-1], ast.Constant)
        and each.args[-1].value == attr
        for each in ast.walk(function)
    )


def _is_renewed(place: AttributeWrite) -> bool:
    """Whether the call found None where later ones find a tensor, and compute the next one from it."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    return (
        place.began == Const(None)
        and not place.elsewhere
        and statement is not None
        and target is not None
        and function is not None
        and isinstance(function.node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and renewed_otherwise(function.node, statement, target)
    )


def _has_company(place: AttributeWrite) -> bool:
    """Whether the attribute is one target of several."""
    return isinstance(next(iter(ancestors(place)), None), ast.Tuple)


def _is_number(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) in (int, float)


def _is_read_elsewhere(place: AttributeWrite) -> bool:
    """Whether the function that writes the attribute reads it in another statement: sums for a log are only written."""
    function = place.site.function
    owner = next((outer for outer in [place.node, *ancestors(place)] if isinstance(outer, ast.Assign)), None)
    if function is None or owner is None:
        return False
    inside = {id(node) for node in ast.walk(owner)}
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == place.attr
        and isinstance(node.ctx, ast.Load)
        and id(node) not in inside
        for node in ast.walk(function.node)
    )


def _was_only_converted(place: AttributeWrite) -> bool:
    """Whether all that the function bound to the attribute before is what the attribute held, moved or converted."""
    function = place.site.function
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if function is None or target is None or not isinstance(place.old, Tensor):
        return False
    path = ast.dump(loaded(target))
    before = [
        each
        for each in ast.walk(function.node)
        if isinstance(each, ast.Assign)
        and each.lineno < target.lineno
        and any(isinstance(one, ast.Attribute) and ast.dump(loaded(one)) == path for one in each.targets)
    ]
    return bool(before) and all(converts(each.value, [path]) for each in before)
