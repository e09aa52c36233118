"""Numbers and lists of the model that change from call to call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeWrite, Place
from exportlens.inference.values import (
    ClassValue,
    Const,
    Instance,
    Sequence,
    Shape,
    Static,
    TensorScalar,
    Value,
    options,
)
from exportlens.outcome import BAKED, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.names import assigned_pairs
from exportlens.rewriting.state.number_state import number_in_buffer
from exportlens.rewriting.state.plain_writes import named_write, written_plainly
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.first_values import (
    decides_what_is_carried,
    hands_data_on,
    is_begun_by_data,
    is_set_by_data,
    reads_itself,
    ways_to,
)
from exportlens_rules.mutation.kept_counts import RENEWED, is_renewed_by_data
from exportlens_rules.mutation.named_state import held_by_name, named_statement, sets_itself_by_name
from exportlens_rules.mutation.state_reads import certainly_written, loaded, parents, reads, reads_through
from exportlens_rules.mutation.tensor_state import OF_CLASS
from exportlens_rules.mutation.turned_results import begins_results, decides_results
from exportlens_rules.reading import ancestors, words

_RENEWED = Outcome(WRONG, WRONG)


class PythonState(Rule):
    """A number or a flag of Python on the model is frozen at export.

    ## What it does
    Finds `self.steps += 1`, `self.rate = self.rate * 0.9` and the like: numbers that a Module keeps as plain
    attributes and computes anew in each call, from what the last one left or from tensor data; and flags that the
    first call turns where it begins with its inputs: `if not self.ready: self.begin(x); self.ready = True`, that
    data of the inputs turn: `if x.max() > 2: self.open = True`, or that decide what a call gives before it turns them:
    `y = a if self.first else b; self.first = False`, also where they begin with None, or are not there. A number that the
    first call reads out of its data, and that later calls compute theirs of, begins anew in each call of the program.
    What the fix makes a buffer still reads as a number.

    ## Why it matters
    The exported program has no Python attributes. It keeps the number that stood there while tracing, for
    ever. A buffer is part of the program, and its updates are too.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code = "EXL205"
    name = "python-state"
    outcome = Outcome(BAKED, BAKED)
    places = (AttributeWrite,)
    examples = (
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x + self.steps
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps.add_(1)
        return x + self.steps
""",
        ),
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = 1.0

    def forward(self, x):
        self.rate = max(self.rate * 0.9, 0.5)
        return x * self.rate
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rate", torch.tensor(1.0, dtype=torch.float64))

    def forward(self, x):
        self.rate.copy_(torch.clamp(self.rate * 0.9, min=0.5))
        return x * self.rate.item()
""",
        ),
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = None

    def forward(self, x):
        level = x.abs().mean().item()
        if self.level is None:
            self.level = level
        else:
            self.level = 0.9 * self.level + 0.1 * level
        return x / self.level
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.tensor(0.0))
        self.register_buffer("begun", torch.tensor(False))

    def forward(self, x):
        level = x.abs().mean()
        self.level.copy_(torch.where(self.begun, 0.9 * self.level + 0.1 * level, level))
        self.begun.fill_(True)
        return x / self.level
""",
            outcome=_RENEWED,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, AttributeWrite)
        if not isinstance(place.owner, (Instance, ClassValue)):
            return
        if isinstance(place.owner, Instance) and place.owner.traced:
            return
        if place.old is None and not begins_results(place):
            return
        given = options(place.value)
        if all(isinstance(option, TensorScalar) for option in given):
            if not (place.augmented or _is_asked_above(place) or is_begun_by_data(place)):
                return
        elif not all(isinstance(option, (Const, Static, Shape)) for option in given) or not (
            (place.augmented and not isinstance(place.old, Sequence))
            or _is_carried(place)
            or _is_turned_by_first_call(place)
            or is_set_by_data(place)
            or _is_begun_anew(place)
            or decides_what_is_carried(place)
            or decides_results(place)
            or begins_results(place)
        ):
            return
        node = place.node
        target = node.target if isinstance(node, ast.AugAssign) else node
        named = named_statement(place)
        written = (
            words(target)
            if named is None or named[1].attr is None
            else f"{words(named[1].owner)}.{named[1].attr}"
        )
        text = any(isinstance(each, Const) and isinstance(each.value, str) for each in given)
        what, advice = ("text", "Keep a number for it in") if text else ("number", "Make it")
        if is_renewed_by_data(place):
            message = RENEWED.format(written, "a number", "it")
            yield self.report(place, message, outcome=_RENEWED)
            return
        yield self.report(
            place,
            f"`{written}` is a {what} of Python: the exported program keeps the value that it had while "
            f"tracing. {advice} a buffer.",
        )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, AttributeWrite)
        if isinstance(report.place.owner, ClassValue):
            return Refusal(OF_CLASS)
        named = named_statement(report.place)
        if named is not None and named[1].attr is not None:
            return written_plainly(report.place, context)
        return number_in_buffer(report.place, context)


def _is_turned_by_first_call(place: AttributeWrite) -> bool:
    """`if not self.ready: self.begin(x); self.ready = True`: the program would begin anew in each call. A flag beside nothing but what
    is bound to other attributes may stand for a table that is made once, and is the same whenever it is made."""
    began, value, function = place.began, place.value, place.site.function
    if not (isinstance(began, Const) and isinstance(value, Const) and type(began.value) is bool):
        return False
    if type(value.value) is not bool or value.value is began.value or place.elsewhere or function is None:
        return False
    named = named_statement(place)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if named is not None:
        # `setattr(self, name + "_ready", True)`
        paths = held_by_name(function.node, place, named[1])
    elif target is not None:
        paths = [ast.dump(loaded(target))]
    else:
        return False
    for each, way in ways_to(place):
        if isinstance(each, ast.If) and any(ast.dump(one) in paths for one in ast.walk(each.test)):
            names = _names(way)
            return any(_begins_with(one, names) or hands_data_on(one, way, place) for one in each.body)
    return False


def _names(function: ast.AST) -> set[str]:
    """The parameters of a function but the first, and the names for what methods compute of those: `m = x.mean(0)`."""
    given = getattr(function, "args", None)
    names = set() if given is None else {each.arg for each in [*given.posonlyargs, *given.args][1:]}
    assigned = [each for each in ast.walk(function) if isinstance(each, ast.Assign)]
    for each in sorted(assigned, key=lambda one: one.lineno):
        for target, value in assigned_pairs(each):
            if isinstance(target, ast.Name) and _is_computed_of(value, names):
                names.add(target.id)
    return names


def _is_computed_of(value: ast.expr, names: set[str]) -> bool:
    """Whether `value` is a chain of methods on one of `names`."""
    while isinstance(value, ast.Call) and _parts_of(value):
        value = _parts_of(value)[0]
    return isinstance(value, ast.Name) and value.id in names


def _begins_with(statement: ast.stmt, names: set[str]) -> bool:
    """Whether a statement hands the values of an input on: `self.begin(x)`, `self.mean.data.copy_(x.mean(0))`."""
    named = named_write(statement)
    if named is not None:
        # What the attribute is called is no value of it.
        names = names - {each.id for each in ast.walk(named.name) if isinstance(each, ast.Name)}
    return isinstance(statement, (ast.Expr, ast.Assign, ast.With)) and any(
        isinstance(each, ast.Call)
        and any(isinstance(one, ast.Name) and one.id in names for one in [*each.args, *_parts_of(each)])
        for each in ast.walk(statement)
    )


def _parts_of(call: ast.Call) -> list[ast.expr]:
    """What the method is called of: `x` of `x.mean(0)`, but not of `x.size(0)`."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr not in ("size", "dim", "numel", "new_zeros", "new_ones"):
        return [func.value]
    return []


def _is_asked_above(place: AttributeWrite) -> bool:
    """Whether the function reads the number that the last call left, on a way that has not put one of this call's data there."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.stmt)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    began = place.began
    if place.elsewhere or target is None or function is None or statement is None:
        return False
    if not (isinstance(began, Const) and type(began.value) in (bool, int, float)):
        return False
    path, around = ast.dump(loaded(target)), parents(function.node)
    return any(
        isinstance(each, ast.stmt)
        and reads_itself(each, path)
        and not certainly_written(function.node, each, path, around)
        and (each.lineno <= target.lineno or _excludes(each, statement, around))
        for each in ast.walk(function.node)
    )


def _excludes(one: ast.stmt, other: ast.stmt, around: dict[ast.AST, ast.AST]) -> bool:
    """Whether the two stand in the two arms of one `if`."""
    above: dict[ast.AST, ast.AST] = {}
    node: ast.AST = one
    while node in around:
        above[around[node]] = node
        node = around[node]
    node = other
    while node in around:
        outer = around[node]
        if outer in above:
            arms = isinstance(outer, ast.If) and node in outer.body and above[outer] in outer.orelse
            return arms or (isinstance(outer, ast.If) and node in outer.orelse and above[outer] in outer.body)
        node = outer
    return False


def _is_carried(place: AttributeWrite) -> bool:
    """Whether a number is computed from the number that the last call left."""
    named = named_statement(place)
    if named is not None and isinstance(named[0], ast.Expr):
        return _is_number(place.began) and place.value != place.began and sets_itself_by_name(place, *named)
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if place.elsewhere or statement is None or target is None or function is None:
        return False
    began = place.began
    # What is put back as it was is the same in each call.
    number = _is_number(began) and place.value != began
    path = ast.dump(loaded(target))
    value = next((value for one, value in assigned_pairs(statement) if one is target), statement.value)
    # `self.a, self.b = self.b, self.a`
    pairs = assigned_pairs(statement)
    tied = [path, *(ast.dump(loaded(one)) for one, _ in pairs if isinstance(one, ast.Attribute))]
    return number and (reads(value, tied) or reads_through(function.node, statement, value, path))


def _is_begun_anew(place: AttributeWrite) -> bool:
    """Whether the call sets a number where its value tells to, and the other way counts on with it: `if self.left > 0: self.left -= 1`
    and `else: self.left = self.period`. The program goes the way of the first call for ever."""
    function = place.site.function
    statement = next((each for each in [place.node, *ancestors(place)] if isinstance(each, ast.Assign)), None)
    target = next((each for each in ast.walk(place.node) if isinstance(each, ast.Attribute)), None)
    if place.elsewhere or statement is None or target is None or function is None:
        return False
    if not _is_number(place.began) or place.value == place.began:
        return False
    path = ast.dump(loaded(target))
    above = set(ancestors(place))
    return any(
        isinstance(each, ast.If)
        and reads(each.test, [path])
        and any(
            statement not in arm
            and above.isdisjoint(arm)
            and any(_counts_on(one, path) for one in arm)
            and (each in above or (each.lineno < statement.lineno and isinstance(arm[-1], ast.Return)))
            for arm in (each.body, each.orelse)
            if arm
        )
        for each in ast.walk(function.node)
    )


def _counts_on(statement: ast.stmt, path: str) -> bool:
    """Whether `statement` computes the attribute (dumped) of itself."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Attribute) and ast.dump(loaded(statement.target)) == path
    return isinstance(statement, ast.Assign) and any(
        isinstance(one, ast.Attribute) and ast.dump(loaded(one)) == path and reads(value, [path])
        for one, value in assigned_pairs(statement)
    )


def _is_number(value: Value | None) -> bool:
    return isinstance(value, Const) and type(value.value) in (bool, int, float)
