"""A tensor indexed by a tensor without dimensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Sequence as ValueSequence

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import ItemRead, ItemWrite, Place
from exportlens.inference.values import Function, Sequence, Slice, Tensor, Value, options
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.sizes.bounded_writes import fill_where_below, is_bounded_by_data
from exportlens.rewriting.sizes.cropped import cut_one_by_one, opened
from exportlens.rewriting.sizes.cut_views import is_narrowed_behind, reshape_cut, view_of
from exportlens.rewriting.sizes.indexing import index_by_index_tensor
from exportlens.rewriting.sizes.number_indices import (
    has_number_from_data,
    index_by_tensor_of_numbers,
    is_list_of_numbers_from_data,
    is_number_from_data,
    is_one_number_from_data,
    select_by_number,
    write_by_number,
)
from exportlens.rewriting.sizes.one_mask import index_by_one_row, is_one_mask
from exportlens.rewriting.sizes.open_steps import (
    TELLING_NOTHING,
    has_open_step,
    is_number_step,
    is_scalar_index,
)
from exportlens.rewriting.sizes.placed_writes import (
    in_place_call,
    is_one_row,
    is_placed_by_data,
    write_by_places,
    write_in_place_by_places,
)
from exportlens.rewriting.sizes.positive_steps import check_step
from exportlens.rewriting.sizes.row_indices import single_items
from exportlens.rule import Example, Report, Rule
from exportlens.source.walking import walk

from exportlens_rules.reading import is_tensor, nodes_around, operators_around, words
from exportlens_rules.recorded import is_recorded

_WRITE = Outcome(FAILS, FAILS)
_SLICE_WRITE = Outcome(OK, FAILS)


class IndexByScalarTensor(Rule):
    """`x[t]` where t is an integer tensor without dimensions.

    ## What it does
    Finds tensors indexed by a tensor of rank 0: `x[t.argmax()]`, `x[:, t]`, `x[t] = 0`, writes to a slice
    that such a tensor bounds: `x[i, :t] = 0`, or to rows and slices that numbers from data place while a gradient flows:
    `x[:n] = self.layer(y)` and `x[:n].copy_(y)`, numbers read out of tensors beside other indices: `x[i, t.item()]`, or in a list: `x[[t.item(), u.item()]]`,
    such numbers and tensors as the step of a slice: `x[:: t.item()]`, as the starts of two slices: `x[a:b, c:d]`, and as the bounds of a slice
    that is viewed in other sizes: `x[:, :n].view(-1, 3, 4)`; and tensors indexed by a mask of rank 0: `loss[loss.isnan()] = 0`.
    Where nothing tells how many dimensions a tensor has, a number that a loop unpacks from its rows, `for a, b in edges`, or a cell,
    `edges[e, 1]`, is taken for one that may have none: a remark, with its fix. So are the parts of what is called like one place: `y, x = click`,
    `center[0]`, cells of int tensors at the counters of loops: `order[b][c]`, and items of them that are made numbers elsewhere: `int(order[i])`.

    ## Why it matters
    Strict tracing reads such an index as a number of Python and fails; writing fails in both modes, and
    writing to a slice in non-strict mode; of a step both must know the sign. With one dimension more it is an operator, and a comparison with
    `torch.arange` says which elements a slice means.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.index_select.html
    """

    code = "EXL411"
    name = "index-by-scalar-tensor"
    outcome = Outcome(FAILS, OK)
    places = (ItemRead, ItemWrite)
    examples = (
        Example(
            bad="""
def forward(self, x):
    best = (x > 0).sum() - 1
    return x.flatten()[best]
""",
            good="""
def forward(self, x):
    best = (x > 0).sum() - 1
    return torch.index_select(x.flatten(), 0, best.reshape(1))[0]
""",
        ),
        Example(
            bad="""
def forward(self, x):
    best = (x > 0).sum() - 1
    y = torch.zeros(12)
    y[best] = 1.0
    return y
""",
            good="""
def forward(self, x):
    best = (x > 0).sum() - 1
    return (torch.arange(12) == best).float()
""",
            outcome=_WRITE,
        ),
        Example(
            bad="""
def forward(self, x):
    y = torch.zeros(3)
    y[: x.sum(1).argmax()] = 1.0
    return y
""",
            good="""
def forward(self, x):
    return (torch.arange(3) < x.sum(1).argmax()).float()
""",
            outcome=_SLICE_WRITE,
        ),
        Example(
            bad="""
def forward(self, x):
    best = (x > 0).sum().clamp(max=3).item()
    return x[:, best]
""",
            good="""
def forward(self, x):
    best = (x > 0).sum().clamp(max=3).item()
    return x.select(1, best)
""",
        ),
        Example(
            bad="""
def forward(self, x):
    best = (x > 0).sum().clamp(max=3).item()
    y = torch.zeros(3, 4)
    y[0, best] = 1.0
    return y
""",
            good="""
def forward(self, x):
    best = (x > 0).sum().clamp(max=3).item()
    y = torch.zeros(3, 4)
    y[0].select(0, best)[...] = 1.0
    return y
""",
            outcome=_WRITE,
        ),
        Example(
            bad="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        n = (x > 0).sum().clamp(max=2).item()
        y = torch.zeros(3, 4)
        y[n : n + 1] = self.layer(x)[:1]
        return y
""",
            good="""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        n = (x > 0).sum().clamp(max=2).item()
        y = torch.zeros(3, 4)
        y[torch.arange(3)[n : n + 1]] = self.layer(x)[:1]
        return y
""",
            outcome=_WRITE,
        ),
        Example(
            bad="""
def forward(self, x):
    step = (x > 0).sum().clamp(min=1).item()
    return x[::step].sum()
""",
            good="""
def forward(self, x):
    step = (x > 0).sum().clamp(min=1)
    rows = torch.arange(x.shape[0]).reshape(-1, 1)
    return torch.where(rows % step == 0, x, 0.0).sum()
""",
            outcome=_WRITE,
        ),
        Example(
            bad="""
def forward(self, x):
    top, bottom, left, right = (x[:1, :4] > 0).long().cumsum(1)[0].tolist()
    return x[top:bottom, left:right].sum()
""",
            good="""
def forward(self, x):
    top, bottom, left, right = (x[:1, :4] > 0).long().cumsum(1)[0].tolist()
    return x[top:bottom][:, left:right].sum()
""",
        ),
        Example(
            bad="""
def forward(self, x):
    best = [row[:3].argmax().item() for row in x]
    return x[best]
""",
            good="""
def forward(self, x):
    best = [row[:3].argmax().item() for row in x]
    return x[torch.tensor(best)]
""",
            outcome=_WRITE,
        ),
        Example(
            bad="""
def forward(self, x):
    loss = x.log().mean()
    loss[loss.isnan()] = 0
    return loss
""",
            good="""
def forward(self, x):
    loss = x.log().mean()
    loss.unsqueeze(0)[loss.isnan().unsqueeze(0)] = 0
    return loss
""",
            outcome=_WRITE,
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, (ItemRead, ItemWrite))
        if not is_tensor(place.owner):
            return
        key = place.key
        parts = key.items if isinstance(key, Sequence) and key.items is not None else [key]
        what = "takes" if isinstance(place, ItemRead) else "writes to"
        if is_list_of_numbers_from_data(key):
            yield self.report(
                place,
                f"`{words(place.node)}` is indexed by a list of numbers that were read out of tensor data: tracing would have to "
                "know each of them. Make a tensor of them: `torch.tensor(numbers)`.",
                outcome=_WRITE,
            )
        elif is_one_mask(key):
            yield self.report(
                place,
                f"`{words(place.node)}` {what} all or nothing by a mask without dimensions: tracing asks it for its bool and fails. "
                "Give both a dimension: `x.unsqueeze(0)[m.unsqueeze(0)]`.",
                outcome=_WRITE,
            )
        elif any(is_scalar_index(part) for part in parts) or _may_be_one_in_a_branch(place, parts):
            yield self.report(
                place,
                f"`{words(place.node)}` {what} a row by a tensor without dimensions: tracing reads it as a "
                "number of Python and fails. Use torch.index_select with `.reshape(1)`, or compare with "
                "torch.arange.",
                outcome=_row_outcome(place),
            )
        elif isinstance(place, ItemWrite) and any(
            isinstance(part, Slice) and any(map(is_tensor, (part.lower, part.upper))) for part in parts
        ):
            yield self.report(
                place,
                f"`{words(place.node)}` writes to a slice that tensor data bounds: tracing demands a number "
                "of Python. Compare torch.arange with the bound and use torch.where.",
                outcome=_SLICE_WRITE,
            )
        elif has_open_step(place):
            yield self.report(
                place,
                f"`{words(place.node)}` has a step that was read out of tensor data: tracing must know how many items that "
                "leaves. Compare `torch.arange(n) % step` with zero and use torch.where.",
                outcome=_WRITE,
            )
        elif isinstance(place, ItemRead) and len(opened(key)) > 1:
            yield self.report(
                place,
                f"`{words(place.node)}` cuts several dimensions from where tensor data says: strict tracing loses one of the "
                "starts. Cut one after the other: `x[a:b][:, c:d]`.",
            )
        elif _is_viewed_cut(place):
            assert isinstance(place, ItemRead)
            yield self.report(
                place,
                f"`{words(place.node)}` is as wide as tensor data says, and is viewed in other sizes: tracing asks whether the whole width can "
                "be split so. Use `.reshape`.",
                outcome=_WRITE,
                only_where=f"`{words(place.node.value)}` has several rows"
                if isinstance(place.node, ast.Subscript)
                else "",
            )
        elif len(parts) > 1 and any(is_number_from_data(part) for part in parts):
            both = isinstance(place, ItemWrite) or any(map(is_tensor, parts))
            yield self.report(
                place,
                f"`{words(place.node)}` has a number that was read out of tensor data among its indices: tracing takes it "
                "alone, as in `x[n]`, not beside others. Use `.select(dim, n)`.",
                outcome=_WRITE if both else None,
            )
        elif items := single_items(place):
            names = " and ".join(f"`{words(each)}`" for each in items.values())
            yield self.report(
                place,
                f"`{words(place.node)}` {what} a row by {names}, an item of a tensor: tracing reads a tensor without dimensions "
                "as a number of Python and fails. Index by `t.unsqueeze(0)`.",
                outcome=_row_outcome(place),
                only_where=f"{names} {'has' if len(items) == 1 else 'have'} no dimensions",
            )
        elif (isinstance(place, ItemWrite) or _is_written_by_method(place)) and _is_written_with_gradient(
            place
        ):
            yield self.report(
                place,
                f"`{words(place.node)}` is a write where a number that was read out of tensor data says, and a gradient flows: "
                "tracing knows no backward of such a view. Index by a tensor: `torch.arange(size)[a:b]`.",
                outcome=_WRITE,
            )

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal:
        assert isinstance(report.place, (ItemRead, ItemWrite))
        if is_one_mask(report.place.key):
            return index_by_one_row(report.place, context)
        if has_open_step(report.place):
            if isinstance(report.place, ItemWrite) or not is_number_step(report.place):
                return Refusal("a slice whose step comes from data has no operator that takes its place")
            return check_step(report.place, context)
        if isinstance(report.place, ItemRead) and len(opened(report.place.key)) > 1:
            return cut_one_by_one(report.place, context)
        if _is_viewed_cut(report.place):
            assert isinstance(report.place, ItemRead)
            return reshape_cut(report.place, context)
        if (
            isinstance(report.place, ItemRead)
            and _is_written_by_method(report.place)
            and _is_written_with_gradient(report.place)
        ):
            return write_in_place_by_places(report.place, context)
        if is_list_of_numbers_from_data(report.place.key):
            return index_by_tensor_of_numbers(report.place, context)
        if isinstance(report.place, ItemWrite) and is_bounded_by_data(report.place.key):
            return fill_where_below(report.place, context)
        if isinstance(report.place, ItemWrite) and is_one_number_from_data(report.place.key):
            return write_by_number(report.place, context)
        if (
            isinstance(report.place, ItemWrite)
            and _is_written_with_gradient(report.place)
            and not is_one_row(report.place.key)
        ):
            fix = write_by_places(report.place, context)
            if isinstance(fix, Fix) or not has_number_from_data(report.place.key):
                return fix
        if has_number_from_data(report.place.key):
            return select_by_number(report.place, context)
        return index_by_index_tensor(report.place, context)


def _row_outcome(place: ItemRead | ItemWrite) -> Outcome | None:
    """No mode takes a write, nor anything in a function that torch.cond traces."""
    return _WRITE if isinstance(place, ItemWrite) or operators_around(place) else None


def _is_viewed_cut(place: ItemRead | ItemWrite) -> bool:
    """Whether what is read has a width from data and is viewed in other sizes."""
    if not isinstance(place, ItemRead) or not is_narrowed_behind(place):
        return False
    return view_of(place.node, nodes_around(place.site.chunk, place.node)) is not None


def _is_written_by_method(place: ItemRead) -> bool:
    """Whether a method writes to what is read, `x[:n].copy_(v)`."""
    if not is_placed_by_data(place.key):
        return False
    return in_place_call(place.node, nodes_around(place.site.chunk, place.node)) is not None


def _is_written_with_gradient(place: ItemRead | ItemWrite) -> bool:
    """Whether numbers from data place a write of, or to, what has a gradient. Who switches them off for parameters is believed."""
    function = place.site.function
    if not place.site.gradients or function is None or not is_placed_by_data(place.key):
        return False
    if "requires_grad" in function.scope.document.text or _may_be_bounded(place, function.node):
        return False
    return (
        is_recorded(place)
        or _is_in_arm(function)
        or any(
            isinstance(each, Tensor) and each.requires_grad
            for value in (place.owner, place.value)
            for each in options(value)
        )
    )


def _is_in_arm(function: Function) -> bool:
    """Whether torch.cond runs `function`: strict tracing takes all that its arms compute with for recorded where one thing is."""
    name = function.name
    outer = function.closure
    return outer is not None and any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "cond"
        and any(isinstance(one, ast.Name) and one.id == name for one in each.args)
        for statement in function.chunk.body
        for each in walk(statement)
    )


def _may_be_bounded(place: ItemRead | ItemWrite, function: ast.AST) -> bool:
    """Whether tracing may know that the places are inside of the tensor, as it does of what was a size, or was checked."""
    index = getattr(place.node, "slice", place.node)
    read = {id(one) for each in walk(index) if isinstance(each, ast.Call) for one in walk(each)}
    names = {each.id for each in walk(index) if isinstance(each, ast.Name) and id(each) not in read}
    for each in walk(function):
        if isinstance(each, ast.Call):
            name = each.func.attr if isinstance(each.func, ast.Attribute) else ast.unparse(each.func)
            silent = name in TELLING_NOTHING or (name == "arange" and len(each.args) > 1)
            given = [*each.args, *(keyword.value for keyword in each.keywords)]
            # What torch.cond decides on tells nothing: neither way is taken for granted.
            given = given[1:] if name == "cond" else given
            if not silent and any(_names(one, names) for one in given):
                return True
    return any(
        isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _FROM_BELOW
        for value in _computed_of(names, function)
        for call in walk(value)
    )


# An upper bound alone leaves it open whether the place is below zero (measured on torch 2.13).
_FROM_BELOW = frozenset({"max", "sym_max", "abs"})
_FROM_ABOVE = frozenset({"min", "sym_min"})


def _computed_of(names: set[str], function: ast.AST) -> list[ast.expr]:
    """What `function` binds `names` to, and what it binds those to that are bounded there."""
    bindings = [each for each in walk(function) if isinstance(each, ast.Assign)]
    found: list[ast.expr] = []
    known: set[str] = set()
    while names - known:
        known |= names
        found = [each.value for each in bindings if any(_names(target, known) for target in each.targets)]
        names = {
            one.id
            for value in found
            for call in walk(value)
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _FROM_ABOVE
            for one in walk(call)
            if isinstance(one, ast.Name)
        }
    return found


def _names(node: ast.expr, names: set[str]) -> bool:
    """Whether `node` computes with one of `names`, not with what it picks or cuts."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Subscript):
        return _names(node.value, names)
    return any(_names(each, names) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))


def _may_be_one_in_a_branch(place: ItemRead | ItemWrite, parts: ValueSequence[Value]) -> bool:
    """Whether an index is an item of a tensor of ints, `best[0]`, in a function that torch.cond traces."""
    index = getattr(place.node, "slice", None)
    nodes = index.elts if isinstance(index, ast.Tuple) else [index]
    return bool(operators_around(place)) and any(
        isinstance(node, ast.Subscript)
        and not any(isinstance(each, (ast.Slice, ast.Constant)) and _adds(each) for each in _indices(node))
        and all(
            isinstance(option, Tensor) and option.rank is None and (option.dtype or "").startswith("int")
            for option in options(part)
        )
        for part, node in zip(parts, nodes, strict=False)
    )


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _adds(index: ast.Slice | ast.Constant) -> bool:
    """Whether an index leaves a dimension, or makes one."""
    return isinstance(index, ast.Slice) or index.value is None or index.value is Ellipsis
