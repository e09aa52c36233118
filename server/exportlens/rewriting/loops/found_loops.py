"""A loop over the rows that tensor data finds becomes a while_loop that takes one row after the other.

    for label in torch.unique(y):        rows = torch.unique(y)
        total = total + f(x, label)      row = torch.full((), 0)
                                   ->    while row < rows.shape[0]:
                                             label = rows[row.reshape(1)].select(0, 0)
                                             row = row + 1
                                             total = total + f(x, label)

The `while` is rewritten as any other. Its body may have sizes of its own that data decides (measured on torch 2.13), which
those of torch's map and scan may not.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Conversion, Iteration
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.arms.gradients import detached_around, refuse_nested_without_gradients
from exportlens.rewriting.arms.items_of_views import items_of_copies
from exportlens.rewriting.arms.rows_in_arms import rows_unbound
from exportlens.rewriting.branches.chosen_numbers import summed
from exportlens.rewriting.calls.eager_contexts import MESSAGE, importing, in_eager_alone
from exportlens.rewriting.calls.one_device import on_one_device
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.liveness import Liveness, exits
from exportlens.rewriting.code.names import bound, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.conversion import convert
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.summed_lists import with_lists_summed
from exportlens.rewriting.loops.early_exits import WITH_WHILE_LOOP
from exportlens.rewriting.memory.effects import kinds_before, own_expressions, visit
from exportlens.rewriting.sizes.indexing import indexed_by_tensors

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef)
_COMPARING = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
NO_OPERATOR = (
    "how often the loop runs is only known when the model runs, and no operator of torch's takes a body with a number of "
    "rows from data: work on all rows at once, as `x[mask].sum()` does, or on every element with a mask as weight"
)


def rewrite_found(place: Iteration | Conversion, context: RewriteContext) -> Fix | Refusal:
    """The fix for `for row in rows`, where tensor data says how many rows there are."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        loop = draft.source.parents[node]
        if not isinstance(loop, ast.For) or loop.iter is not node:
            raise Refused(NO_OPERATOR)
        listed = options(place.value) if isinstance(place, Conversion) and place.to == "list" else []
        if not all(isinstance(each, Tensor) and each.rank == 1 for each in listed):
            raise Refused("the list is not known to hold numbers")
        function = draft.source.enclosing_function(loop)
        if function is None:
            raise Refused("the loop is not inside a function")
        kinds = kinds_before(function, loop, draft.kinds(place.variables))
        lists = with_lists_summed(draft.source, loop, kinds, draft.torch)
        if lists is not None:
            source, loop = lists
            function = source.enclosing_function(loop)
            assert function is not None
            kinds = kinds_before(function, loop, draft.kinds(place.variables))
            return draft.fix(WITH_WHILE_LOOP, _converted(source, loop, kinds, draft.torch))
        before = kinds.copy()
        text = _converted(draft.source, loop, kinds, draft.torch)
        try:
            refuse_nested_without_gradients(draft.source, loop, text, draft.torch)
        except Refused:
            changed = detached_around(draft.source, loop, before)
            if changed is None:
                changed = in_eager_alone(draft, draft.source, loop, before)
                if changed is None:
                    raise
                text = _converted(*changed, before, draft.torch)
                return importing(draft, draft.fix(WITH_WHILE_LOOP + MESSAGE, text))
            text = _converted(*changed, before, draft.torch)
        return draft.fix(WITH_WHILE_LOOP, text)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _converted(source: Source, loop: ast.For, kinds: Kinds, torch: str) -> str:
    before = kinds.copy()
    changed, found = _counted(source, loop, kinds, torch)
    text, _ = convert(changed, found, kinds, torch, None, ({}, {}))
    text = rows_unbound(source, loop, on_one_device(source, loop, text, before), before)
    return items_of_copies(source, loop, text)


def _counted(source: Source, loop: ast.For, kinds: Kinds, torch: str) -> tuple[Source, ast.While]:
    """The text with a `while` for `loop`, and that statement; `kinds` become those just before it. Raises Refused."""
    function = source.enclosing_function(loop)
    if function is None or loop.orelse or not source.begins_line(loop):
        raise Refused("the loop has an `else`, or shares its line with another statement")
    if exits(loop.body) & {"breaks", "returns", "raises"}:
        raise Refused("the loop's body may leave it")
    after = Liveness(function).live_after(loop)
    kept = sorted(name for name in bound(loop.target) if name in after)
    if kept:
        raise Refused(f"`{kept[0]}` is used after the loop, and is not bound where there is no row")
    taken = every_name(source.tree)
    nl, indent = source.newline, source.indent_of(loop)
    inner = indent + source.indent_unit()
    found_rows, target, number = _numbered(loop)
    listed = _listed(found_rows)
    swaps: list[Replacement] = []
    if listed is not None:
        swaps = _read_out(source, loop, target, kinds)
        found_rows = listed
    rows, row = fresh("rows", taken), fresh("row", taken)
    lines = [
        f"{rows} = {source.of(found_rows)}",
        f"{indent}{row} = {torch}.full((), 0)",
        f"{indent}while {row} < {rows}.shape[0]:",
        f"{inner}{source.of(target)} = {rows}[{row}.reshape(1)].select(0, 0)",
        *([f"{inner}{number} = {row}"] if number else []),
        f"{inner}{row} = {row} + 1",
        source.block(loop.body, inner, swaps),
    ]
    begin = source.start(loop)
    changed = Source(replaced(source.text, [Replacement(begin, source.span([loop])[1], nl.join(lines))]))
    found = next(
        each
        for each in ast.walk(changed.tree)
        if _is_loop(changed, each, row) and changed.start(each) > begin
    )
    assert isinstance(found, ast.While)
    block, index = changed.block_of(found)
    kinds.run(block[index - 2 : index])
    changed, found = summed(changed, found, kinds, torch)
    inside = kinds.copy()
    known = inside.names[rows]
    if known.dtype is None and known.rank == 1 and _is_index(found, target):
        # What takes an item of a tensor is an int, or a mask: of those not one alone is gone through.
        inside.names[rows] = replace(known, dtype="int64")
    return indexed_by_tensors(changed, found, inside, torch) or (changed, found)


def _numbered(loop: ast.For) -> tuple[ast.expr, ast.expr, str]:
    """The rows that `loop` goes through, what it binds one to, and the name of its number where `enumerate` gives one that is
    read. Raises Refused where the iterator is another one of Python's."""
    rows, target = loop.iter, loop.target
    called = rows.func.id if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) else ""
    if called not in _ITERATORS:
        return rows, target, ""
    plain = isinstance(rows, ast.Call) and len(rows.args) == 1 and not rows.keywords
    pair = target.elts if isinstance(target, ast.Tuple) else []
    if called != "enumerate" or not plain or len(pair) != 2 or not isinstance(pair[0], ast.Name):
        raise Refused(NO_OPERATOR)
    assert isinstance(rows, ast.Call)
    number = pair[0].id
    read = any(
        isinstance(each, ast.Name) and each.id == number for one in loop.body for each in ast.walk(one)
    )
    return rows.args[0], pair[1], number if read else ""


def _listed(rows: ast.expr) -> ast.expr | None:
    """The tensor whose elements `rows` makes a list of."""
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Attribute) and rows.func.attr == "tolist":
        return rows.func.value
    return None


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _decides(source: Source, node: ast.expr) -> bool:
    """Whether `node` is what a branch asks, or a part of it."""
    parent = source.parents[node]
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        node, parent = parent, source.parents[parent]
    return isinstance(parent, ast.If) and parent.test is node


def _read_out(source: Source, loop: ast.For, target: ast.expr, kinds: Kinds) -> list[Replacement]:
    """Numbers of a list may be tensors where they are nothing but indices of tensors, or compared: with tensors, or for a branch. What
    changes where they are given to torch, which takes numbers there. Raises Refused for other uses."""
    if not isinstance(target, ast.Name):
        raise Refused(NO_OPERATOR)
    name = target.id
    indices: set[int] = set()
    given: list[ast.expr] = []

    def see(statement: ast.stmt, now: Kinds) -> None:
        for each in own_expressions(statement):
            if isinstance(each, ast.Subscript) and now.of(each.value).what == "tensor":
                parts = each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice]
                indices.update(id(part) for part in parts)
            elif isinstance(each, ast.Compare) and len(each.ops) == 1 and isinstance(each.ops[0], _COMPARING):
                sides = [each.left, each.comparators[0]]
                others = [now.of(side) for side in sides if not _is_named(side, name)]
                # A tensor without dimensions is compared in a dtype of both, one with some in its own.
                if any(
                    (other.what == "tensor" and other.rank != 0)
                    or (other.what == "number" and _decides(source, each))
                    for other in others
                ):
                    indices.update(id(side) for side in sides)
            elif isinstance(each, ast.Call) and _takes_number(each, now):
                given.extend(one for one in each.args if _is_named(one, name))

    visit(loop.body, kinds.copy(), see)
    for statement in loop.body:
        for each in ast.walk(statement):
            # What a function inside of the loop does with an index is not followed.
            inner = any(isinstance(one, _SCOPES) for one in source.around(each, loop.body))
            known = (not inner and id(each) in indices) or any(each is one for one in given)
            if isinstance(each, ast.Name) and each.id == name and not known:
                raise Refused(f"`{name}` is a number of Python, and not only an index of tensors")
    return [source.swap(each, f"{name}.item()") for each in given]


def _takes_number(call: ast.Call, kinds: Kinds) -> bool:
    """Whether `call` is one of those by which an item of a tensor is taken: `t.select(1, e)`, `torch.full((1,), e)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "select":
        return kinds.of(call.func.value).what == "tensor"
    return kinds.qualified(call.func) == "torch.full"


_ITERATORS = frozenset(
    {"enumerate", "zip", "reversed", "sorted", "iter", "map", "filter", "list", "tuple", "range"}
)


def _is_index(loop: ast.While, target: ast.expr) -> bool:
    """Whether an element is the only index somewhere."""
    return isinstance(target, ast.Name) and any(
        isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Name) and each.slice.id == target.id
        for each in ast.walk(loop)
    )


def _is_loop(source: Source, node: ast.AST, row: str) -> bool:
    return isinstance(node, ast.While) and source.of(node.test).startswith(f"{row} <")
