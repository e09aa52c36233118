"""Lists and dicts of the model that one call fills and the next one reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import AttributeWrite, ContainerWrite, Place
from exportlens.inference.values import (
    Const,
    Instance,
    Sequence,
    Shape,
    Static,
    TensorScalar,
    Unknown,
    Value,
    options,
)
from exportlens.outcome import BAKED, WRONG, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.names import assigned_pairs
from exportlens.rewriting.state.kept_windows import window_in_buffer
from exportlens.rewriting.state.own_attributes import items_as_attributes
from exportlens.rewriting.state.taken_apart import taken_apart
from exportlens.rule import Example, Report, Rule

from exportlens_rules.mutation.first_values import is_left_to_later_calls
from exportlens_rules.mutation.items_of_first_call import is_item_of_first_call
from exportlens_rules.mutation.kept_counts import (
    RENEWED,
    counts_decide,
    is_bound_anew,
    is_number,
    is_of_data,
    is_renewed_by_data,
    item_decides,
    members_decide,
    numbers_decide,
)
from exportlens_rules.mutation.kept_holders import called_with, is_emptied, is_path
from exportlens_rules.mutation.kept_names import under_one_name, updated_items
from exportlens_rules.mutation.lengthened_lists import added_at_last, is_tensor, lengthened, target_of
from exportlens_rules.mutation.state_reads import (
    certainly_written,
    converts,
    loaded,
    parents,
    read_before,
    reads,
    resets_by_kept_names,
)
from exportlens_rules.reading import ancestors, words

_NUMBER = Outcome(BAKED, BAKED)
_GROWS = (
    "`{}` keeps the {} of earlier calls: the exported program starts each call from what it held while tracing. "
    "Keep them in a buffer of a fixed size."
)
_FIRST = (
    "`{}` is what the first call computes of its inputs: the exported program computes it anew in each call. Register a buffer of "
    "its final shape in `__init__`, and write it in place."
)
_NUMBERS = (
    "`{}` keeps the numbers of earlier calls, and they decide what the call gives: the exported program knows those that it had while "
    "tracing. Keep them in a buffer."
)
_ASKED = (
    "What is in `{}` after earlier calls decides what the call gives: the exported program knows what was in it while tracing. "
    "Keep a flag or a count in a buffer."
)
_COUNTED = (
    "`{}` grows from call to call, and its length decides what the call gives: the exported program knows the length that it had "
    "while tracing. Count in a buffer."
)
# What takes something out, or changes the order, is another rule's.
_TAKEN = frozenset({"pop", "popleft", "popitem", "rotate", "reverse"})
# What tells no more of a list than how much is in it, or takes something out of it.
_COUNTING = frozenset({"len", "bool"})
_TAKING_OUT = frozenset({"pop", "popleft", "append", "appendleft", "extend", "insert", "add", "clear"})


class StateInContainer(Rule):
    """A list or a dict of the model carries tensors from one call to the next, and the exported program forgets them.

    ## What it does
    Finds `self.history.append(x)`, of a tensor or a number that is read out of one, where the same call reads what
    earlier ones left there, as `torch.stack(self.history)` does, and `self.cache["mean"] = 0.9 * self.cache["mean"] + x`;
    also lists whose items are moved on, or cut, and that later calls read: `self.last[0] = self.last[1]; self.last[1] = x`.
    A list that grows from call to call is found, too, where its length decides what a call gives: `y / len(self.seen)`; so are sets
    and dicts where what is in them does, and numbers of Python in a list, a tuple or a Counter that the next call computes with.
    So is an item that the first call computes of its inputs where there is none yet: `if key not in self.means: self.means[key] = x.mean(0)`.
    A default of a parameter that calls fill (`def forward(self, x, cache=[])`) and a list of the class are such lists.
    A list that is made anew or emptied in each call is fine, and so is one that is only filled, for whoever looks at it
    later, and a table that is made once for each size.

    ## Why it matters
    The program is traced once: it has the list as it was then, with this call's tensors added, and starts from
    that each time. State that an exported program keeps is a buffer of a fixed size, written in place.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code = "EXL218"
    name = "state-in-container"
    outcome = Outcome(WRONG, WRONG)
    places = (ContainerWrite, AttributeWrite)
    examples = (
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history.append(x.mean(0))
        return x - torch.stack(self.history).mean(0)
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.total += x.mean(0)
        self.calls += 1
        return x - self.total / self.calls
""",
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {"mean": torch.zeros(4)}

    def forward(self, x):
        self.cache["mean"] = 0.9 * self.cache["mean"] + 0.1 * x.mean(0)
        return x - self.cache["mean"]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        return x - self.mean
""",
        ),
        Example(
            bad="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.stats = {"calls": 0}

    def forward(self, x):
        self.stats["calls"] += 1
        return x / self.stats["calls"]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls += 1
        return x / self.calls
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
        self.means = {}

    def forward(self, x):
        if "first" not in self.means:
            self.means["first"] = x.mean(0)
        return x - self.means["first"]
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.zeros(4))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.first.copy_(torch.where(self.calls == 0, x.mean(0), self.first))
        self.calls.add_(1)
        return x - self.first
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        if isinstance(place, ContainerWrite) and place.how in _TAKEN:
            return
        if resets_by_kept_names(getattr(place, "owner", None)):
            return
        kept = place if isinstance(place, ContainerWrite) else None
        reports = [] if kept is not None and kept.anew else list(self._reports(place))
        yield from reports
        if kept is not None and not reports and is_tensor(kept.value) and is_left_to_later_calls(kept):
            yield self.report(place, _GROWS.format(f"self.{kept.attr}", "tensors"))

    def _reports(self, place: Place) -> Iterator[Report]:
        function = None if place.site.function is None else place.site.function.node
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(place, AttributeWrite):
            statement = lengthened(place)
            if statement is None:
                yield from self._of_bound_numbers(place, function)
            else:
                holder = loaded(target_of(statement))
                kept = not certainly_written(function, statement, ast.dump(holder), parents(function))
                if kept and _is_read_as_a_whole(place, function, statement, holder):
                    added = added_at_last(place.value)
                    what = "numbers" if isinstance(added, TensorScalar) else "tensors"
                    yield self.report(place, _GROWS.format(words(holder), what))
            return
        assert isinstance(place, ContainerWrite)
        function, node = under_one_name(place, function)
        if place.how == "[]" and isinstance(node, ast.Subscript):
            number = _is_number(place.value)
            if (number or is_tensor(place.value)) and _item_is_carried(place, node, function):
                what = (
                    "a number of Python" if number else "a tensor computed from what earlier calls left there"
                )
                yield self.report(
                    place,
                    f"`{words(place.node)}` is {what}: the exported program starts each call from what stood there while "
                    "tracing. Keep it in a buffer of the model, and write it in place.",
                    outcome=_NUMBER if number else None,
                )
            elif is_item_of_first_call(place):
                yield self.report(place, _FIRST.format(words(place.node)))
            else:
                yield from self._of_numbers(place, function, node.value)
        elif not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return
        elif place.how == "update":
            if any(_is_read_above(function, node, item) for item in updated_items(node)):
                yield self.report(place, _GROWS.format(words(node.func.value), "tensors"))
        else:
            tensors = is_tensor(place.value) or _is_joined(place, function, node.func.value)
            numbers = all(isinstance(option, TensorScalar) for option in options(place.value))
            if (tensors or numbers) and _is_read_as_a_whole(place, function, node, node.func.value):
                what = "tensors" if tensors else "numbers"
                yield self.report(place, _GROWS.format(words(node.func.value), what))
            else:
                yield from self._of_numbers(place, function, node.func.value)

    def _of_bound_numbers(
        self, place: AttributeWrite, function: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Iterator[Report]:
        """Reports on numbers in a tuple or a list that is bound anew: `self.state = (self.state[0] + 1, 0)`."""
        began, value = place.began, place.value
        if isinstance(value, Sequence) and is_renewed_by_data(place):
            yield self.report(place, RENEWED.format(f"self.{place.attr}", "numbers", "them"))
            return
        if not isinstance(began, Sequence) or not isinstance(value, Sequence) or place.elsewhere:
            return
        if not isinstance(place.owner, Instance) or place.owner.traced or began.items is None:
            return
        if not all(isinstance(each, Const) and is_number(each) for each in began.items):
            return
        if not is_number(value) and not is_of_data(value):
            return
        if value.items == began.items and not place.augmented:
            return
        around = parents(function)
        for each in [place.node, *ancestors(place)]:
            target: ast.expr | None = each.target if isinstance(each, ast.AugAssign) else None
            if isinstance(each, ast.Assign) and len(each.targets) == 1:
                target = each.targets[0]
            if isinstance(target, ast.Attribute) and isinstance(each, ast.stmt):
                path = ast.dump(loaded(target))
                if is_bound_anew(place, function, each, path, around):
                    yield self.report(place, _NUMBERS.format(words(loaded(target))), outcome=_NUMBER)
                return

    def _of_numbers(
        self, place: ContainerWrite, function: ast.FunctionDef | ast.AsyncFunctionDef, holder: ast.expr
    ) -> Iterator[Report]:
        """Reports on how much is in the container, what is, and on numbers of Python in it."""
        functions, path = called_with(place, function), ast.dump(holder)
        if any(is_emptied(each, path) for each in functions):
            return
        grows = place.how in ("append", "appendleft", "extend", "insert", "add")
        if grows and any(counts_decide(place, each, path) for each in functions):
            yield self.report(place, _COUNTED.format(words(holder)), outcome=_NUMBER)
        elif (place.how != "[]" or not is_tensor(place.value)) and any(
            members_decide(place, each, path) for each in functions
        ):
            yield self.report(place, _ASKED.format(words(holder)), outcome=_NUMBER)
        elif (
            place.how != "[]"
            and is_number(place.value)
            and any(numbers_decide(place, each, path) for each in functions)
        ):
            yield self.report(place, _NUMBERS.format(words(holder)), outcome=_NUMBER)

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        place = report.place
        if isinstance(place, ContainerWrite) and place.owner is None:
            return Refusal(
                f"whose state `{place.attr}` is, is for you to say: keep it in a buffer of the model, or hand it in"
            )
        if isinstance(next(iter(ancestors(place)), None), ast.Tuple):
            return Refusal("the items are set together, and may hang on each other")
        if isinstance(place, ContainerWrite) and place.how in ("add", "count", "[]"):
            if not is_tensor(place.value) and not (place.how == "[]" and _is_number(place.value)):
                return Refusal(
                    "a buffer has to hold a flag or a count for each key: which keys there are, is not known"
                )
        elif isinstance(place, AttributeWrite) and (
            is_number(place.value) or (is_of_data(place.value) and lengthened(place) is None)
        ):
            return Refusal("the numbers are bound together: keep each in an attribute of its own")
        if isinstance(place, ContainerWrite) and place.how == "[]" and not place.anew:
            return items_as_attributes(place, context)
        assert isinstance(place, (AttributeWrite, ContainerWrite))
        fix = window_in_buffer(place, context)
        if isinstance(fix, Refusal) and isinstance(place, ContainerWrite) and place.how == "update":
            apart = taken_apart(place, context)
            return fix if isinstance(apart, Refusal) else apart
        return fix


def _is_joined(place: ContainerWrite, function: ast.AST, holder: ast.expr) -> bool:
    """Whether what is not known is a tensor, as all that is kept is stacked."""
    return isinstance(place.value, Unknown) and any(
        isinstance(each, ast.Call)
        and ast.unparse(each.func) in ("torch.stack", "torch.cat", "torch.concat")
        and bool(each.args)
        and any(ast.dump(one) == ast.dump(holder) for one in ast.walk(each.args[0]))
        for method in called_with(place, function)
        for each in ast.walk(method)
    )


def _is_read_above(
    function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.expr, item: ast.Subscript
) -> bool:
    """Whether `function` reads the item in a statement before that of `call`, which sets it in any case."""
    path, around = ast.dump(item), parents(function)
    statement: ast.AST = call
    while not isinstance(statement, ast.stmt):
        statement = around[statement]
    return around[statement] is function and any(
        ast.dump(each) == path and each.lineno < call.lineno
        for each in ast.walk(function)
        if isinstance(each, ast.Subscript)
    )


def _is_number(value: Value) -> bool:
    return all(
        isinstance(option, (Const, Static, Shape, TensorScalar)) for option in options(value)
    ) and not all(
        isinstance(option, Const) and type(option.value) not in (int, float) for option in options(value)
    )


def _item_is_carried(
    place: ContainerWrite, target: ast.Subscript, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> bool:
    """Whether the item is computed from what the last call left there, and something else reads it."""
    path = ast.dump(loaded(target))
    around = parents(function)
    statement = around[target]
    if isinstance(statement, ast.Tuple):
        statement = around[statement]
    if not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return False
    if certainly_written(function, statement, path, around):
        return False
    functions = called_with(place, function)
    if any(is_emptied(each, ast.dump(target.value)) for each in functions):
        return False
    if not any(_is_read_elsewhere(each, statement, target) for each in functions):
        return False
    if any(_is_set_back(each, path) for each in functions):
        return False
    if isinstance(statement, ast.AugAssign):
        return True
    pairs = assigned_pairs(statement)
    value = next((value for one, value in pairs if one is target), statement.value)
    if reads(value, [path]) or _gets(value, target):
        return not converts(value, [path])
    if isinstance(statement, ast.Assign) and item_decides(place, function, statement, path):
        return True
    return read_before(function, statement, target) and not _leaves_with_it(function, path)


def _gets(value: ast.expr, item: ast.Subscript) -> bool:
    """Whether `value` asks the dict for the item, which may be missing: `self.sums.get("loss", 0)`."""
    holder, key = ast.dump(item.value), ast.dump(item.slice)
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "get"
        and ast.dump(each.func.value) == holder
        and [ast.dump(one) for one in each.args[:1]] == [key]
        for each in ast.walk(value)
    )


def _is_read_elsewhere(function: ast.AST, statement: ast.stmt, target: ast.Subscript) -> bool:
    """Whether another statement reads the item, one that may be the same, or all of them."""
    inside = {id(node) for node in ast.walk(statement)}
    holder, key = ast.dump(target.value), target.slice
    around = parents(function)
    return any(
        isinstance(node, (ast.Attribute, ast.Name))
        and isinstance(node.ctx, ast.Load)
        and id(node) not in inside
        and ast.dump(node) == holder
        and not isinstance(around[node], ast.Subscript)
        and not _tells_nothing_of_old_items(node, around[node], around, 0)
        and not isinstance(around[node], ast.Compare)
        for node in ast.walk(function)
    ) or any(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and id(node) not in inside
        and ast.dump(node.value) == holder
        and (
            not (isinstance(key, ast.Constant) and isinstance(node.slice, ast.Constant))
            or key.value == node.slice.value
        )
        for node in ast.walk(function)
    )


def _leaves_with_it(function: ast.AST, path: str) -> bool:
    """Whether an early return gives what is there already: a table that is made once for each key."""
    return any(
        isinstance(each, ast.If)
        and isinstance(each.body[-1], ast.Return)
        and each.body[-1].value is not None
        and reads(each.body[-1].value, [path])
        for each in ast.walk(function)
    )


def _is_read_as_a_whole(
    place: Place, function: ast.AST, write: ast.expr | ast.stmt, holder: ast.expr
) -> bool:
    """Whether the call reads what earlier ones may have added to `holder`."""
    functions = called_with(place, function)
    path = ast.dump(holder)
    if any(is_emptied(each, path) for each in functions):
        return False
    inside = {id(each) for each in ast.walk(write)}
    newest = "0" if isinstance(place, ContainerWrite) and _adds_at_begin(place, write) else "-1"
    for each in functions:
        around = parents(each)
        # In what other functions read, the last item may be this call's own.
        line = write.lineno if each is function else 0
        for node in ast.walk(each):
            if (
                isinstance(node, (ast.Attribute, ast.Name))
                and id(node) not in inside
                and ast.dump(node) == path
                and not _tells_nothing_of_old_items(node, around[node], around, line, newest)
            ):
                return True
    return False


def _adds_at_begin(place: ContainerWrite, write: ast.expr | ast.stmt) -> bool:
    given = write.args[:1] if isinstance(write, ast.Call) else []
    return place.how == "appendleft" or (place.how == "insert" and list(map(ast.unparse, given)) == ["0"])


def _is_set_back(function: ast.AST, path: str) -> bool:
    """Whether `function` sets the item to a constant, as the next call finds it."""
    return any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Constant)
        and any(is_path(target, path) for target in each.targets)
        for each in ast.walk(function)
    )


def _tells_nothing_of_old_items(
    node: ast.AST, use: ast.AST, around: dict[ast.AST, ast.AST], line: int, newest: str = "-1"
) -> bool:
    """Whether a use of the container tells at most how much is in it, takes something out, or reads what was added
    on `line` or after it, which is the item at `newest`."""
    if isinstance(use, ast.Call):
        return isinstance(use.func, ast.Name) and use.func.id in _COUNTING
    if isinstance(use, ast.Attribute):
        outer = around[use]
        if not isinstance(outer, ast.Call) or use.attr not in _TAKING_OUT:
            return False
        # Off a stack comes what was put there last.
        newest_out = use.attr == "pop" and not outer.args and newest == "-1" and outer.lineno > line
        return newest_out or isinstance(around[outer], ast.Expr)
    if isinstance(use, ast.Subscript) and use.value is node:
        last = ast.unparse(use.slice) == newest
        return isinstance(use.ctx, ast.Store) or (last and use.lineno > line)
    if isinstance(use, (ast.If, ast.While, ast.IfExp)):
        return use.test is node
    return isinstance(use, (ast.UnaryOp, ast.BoolOp)) or (
        isinstance(use, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in use.ops)
    )
