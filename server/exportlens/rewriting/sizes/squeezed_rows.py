"""Row numbers that were found and squeezed: `mask.nonzero().squeeze()` has no dimension where exactly one row was found.

Tracing takes the number of rows for another than one, and the program fails on one: `.squeeze(1)` keeps the dimension.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeVar

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import leaves
from exportlens.rewriting.code.names import dotted, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_Loop = TypeVar("_Loop", ast.For, ast.While, ast.For | ast.While)
# What takes one row number and a list of one alike.
_TAKING = frozenset(
    {
        "index_select",
        "index_copy",
        "index_copy_",
        "index_add",
        "index_add_",
        "index_fill",
        "index_fill_",
        "len",
    }
)
_ASKING = frozenset({"numel", "nelement", "size", "shape", "device", "dtype", "new_zeros", "is_cuda"})
# What is one number of however many rows.
_REDUCING = frozenset(
    {"mean", "sum", "max", "min", "amax", "amin", "norm", "std", "var", "prod", "any", "all", "numel"}
)
# What makes of each number another one.
_CONVERTING = frozenset(
    {"long", "int", "float", "double", "half", "bool", "detach", "clone", "abs", "exp", "log", "sigmoid"}
)


def squeezed_along_rows(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> tuple[Source, ast.If] | None:
    """The text where what `node` reads of found rows keeps its dimension, and the branch in it; None where it reads none.
    Raises Refused where the dimension may be told."""
    function = source.enclosing_function(node)
    if function is None:
        return None
    read = reads(node)
    calls = [call for name, call in _squeezed(function) if name in read]
    if not calls:
        return None
    for name, call in _squeezed(function):
        for each in _uses(function, name) if call in calls else ():
            if not _is_blind(source, each):
                raise Refused(_told(name, "program"))
    start = source.start(node)
    swaps = [_along_rows(source, each) for each in calls]
    offset = start + sum(1 for each in swaps if each.start < start)
    changed = Source(replaced(source.text, swaps))
    return changed, changed.branch_at(offset)


def _told(name: str, where: str) -> str:
    return (
        f"`{name}` has no dimension where one row is found, which the {where} would not know: squeeze the last "
        "dimension only, as `.squeeze(1)`"
    )


def refuse_rounds(source: Source, node: ast.AST) -> None:
    """Raise Refused where a loop in `node`, which is to be traced, goes through rows that were found: through how many is for data to
    say. Where that is certain, the loop is rewritten first. So is what squeezes found rows behind an early end: it would be compiled,
    as the body of a loop is."""
    function = source.enclosing_function(node)
    squeezed = list(_squeezed(function)) if function is not None else []
    if function is None or not squeezed:
        return
    found = {name for name, _ in squeezed}
    # What follows an early end moves into the other arm.
    ends = isinstance(node, ast.If) and (leaves(node.body) or (node.orelse and leaves(node.orelse)))
    returns = any(isinstance(each, ast.Return) for each in walk(node))
    for name, call in squeezed:
        if ends and returns and source.start(call) > source.end(node):
            raise Refused(_told(name, "program"))
    for each in walk(function):
        if not isinstance(each, ast.For) or source.start(each) <= source.start(node):
            continue
        if not ends and source.end(each) > source.end(node):
            continue
        if isinstance(each.iter, ast.Name) and each.iter.id in found:
            raise Refused(f"the loop over `{each.iter.id}` runs as often as rows are found")


def kept_in_rounds(source: Source, loop: _Loop) -> tuple[Source, _Loop] | None:
    """The text where found rows keep their dimension in the body of `loop`, which gives it back where it is lost, `if i.dim() == 0: i
    = i.unsqueeze(0)`, or asks for nothing that tells; None where it squeezes none. Raises Refused where it may be told: a loop's
    body is compiled, and takes the number of rows for another than one."""
    swaps = []
    around = source.enclosing_function(loop) or loop
    for name, call in _squeezed(loop):
        if not _is_given_back(source, name, call, around):
            for each in _uses(around, name):
                if not _is_blind(source, each):
                    raise Refused(_told(name, "loop"))
        swaps.append(_along_rows(source, call))
    if not swaps:
        return None
    begin, changed = source.start(loop), Source(replaced(source.text, swaps))
    found = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in found if changed.start(each) == begin)


def _is_given_back(source: Source, name: str, call: ast.Call, around: ast.AST) -> bool:
    """Whether what follows `name = i.nonzero().squeeze()` gives the dimension back where it is lost: `if name.dim() == 0: name =
    name.unsqueeze(0)`, also where the number of dimensions got a name of its own that is read there alone."""
    block, index = source.block_of(source.enclosing_statement(call))
    following = block[index + 1 : index + 3]
    asked = {f"{name}.dim()", f"{name}.ndim", f"len({name}.shape)", f"len({name}.size())"}
    given = {f"{name}.unsqueeze(0)", f"{name}.view(-1)", f"{name}.reshape(-1)", f"{name}[None]"}
    if following and isinstance(following[0], ast.Assign) and ast.unparse(following[0].value) in asked:
        target = following[0].targets[0]
        if not isinstance(target, ast.Name) or len(list(_uses(around, target.id))) != 1:
            return False
        asked, following = {target.id}, following[1:]
    if not following or not isinstance(following[0], ast.If) or following[0].orelse:
        return False
    test = following[0].test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    left = test.left
    if isinstance(left, ast.NamedExpr):
        if any(_uses(around, left.target.id)):
            return False
        left = left.value
    sides = (ast.unparse(left), type(test.ops[0]), ast.unparse(test.comparators[0]))
    lost = sides[0] in asked and sides[1:] in ((ast.Eq, "0"), (ast.Lt, "1"))
    return lost and [ast.unparse(each) for each in following[0].body] in [
        [f"{name} = {text}"] for text in given
    ]


def _squeezed(function: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """The names that hold found rows, squeezed, and the calls that squeeze."""
    for each in walk(function):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        target, call = each.targets[0], each.value
        if (
            isinstance(target, ast.Name)
            and isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "squeeze"
            and not call.args
            and not call.keywords
            and _is_found(_turned(call.func.value) or call.func.value)
        ):
            yield target.id, call


def _is_found(node: ast.expr) -> bool:
    """Whether `node` finds rows, as `mask.nonzero()`."""
    return (
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "nonzero"
        and not any(
            key.arg == "as_tuple" and getattr(key.value, "value", None) is not False for key in node.keywords
        )
    )


def _turned(node: ast.expr) -> ast.expr | None:
    """What `node` transposes, as `rows.t()` and `rows.T`; None where it is something else."""
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return node.value
    func = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else None
    return func.value if isinstance(func, ast.Attribute) and func.attr == "t" else None


def _along_rows(source: Source, call: ast.Call) -> Replacement:
    """What lets `call`, which squeezes found rows, keep their dimension."""
    assert isinstance(call.func, ast.Attribute)
    dim = "1" if _turned(call.func.value) is None else "0"
    return Replacement(source.end(call) - 1, source.end(call) - 1, dim)


def _uses(function: ast.AST, name: str) -> Iterator[ast.Name]:
    for each in walk(function):
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
            yield each


def _is_blind(source: Source, node: ast.expr) -> bool:
    """Whether the use `node` of row numbers gives the same for one number and for a list of it."""
    parent = source.parents[node]
    if isinstance(parent, ast.Attribute):
        return parent.attr in _ASKING
    if isinstance(parent, ast.Call) and node in parent.args:
        return str(dotted(parent.func) or getattr(parent.func, "attr", "")).rpartition(".")[2] in _TAKING
    if isinstance(parent, ast.Tuple):
        parent = source.parents[parent]
    if not isinstance(parent, ast.Subscript) or parent.value is node:
        return False
    return isinstance(parent.ctx, ast.Store) or _is_reduced(source, parent)


def _is_reduced(source: Source, picked: ast.Subscript) -> bool:
    """Whether the rows `picked` only become one number, or pick again where something is written."""
    parent = source.parents[picked]
    if isinstance(parent, ast.Attribute):
        call = source.parents[parent]
        return parent.attr in _REDUCING and isinstance(call, ast.Call) and not call.args and not call.keywords
    if isinstance(parent, ast.Call) and picked in parent.args:
        name = str(dotted(parent.func) or getattr(parent.func, "attr", "")).rpartition(".")[2]
        whole = not any(key.arg == "reduction" for key in parent.keywords)
        return whole and name.endswith(("loss", "cross_entropy"))
    around = parent
    while isinstance(around, ast.BinOp) and any(
        isinstance(each, ast.Constant) for each in (around.left, around.right)
    ):
        # `y[rows, x[rows] - 1] = 1`
        around = source.parents[around]
    outer = source.parents[around] if isinstance(around, ast.Tuple) else around
    if isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Store):
        return True
    return isinstance(picked.slice, ast.Name) and _is_written_to(source, picked, picked.slice.id)


def _is_written_to(source: Source, picked: ast.expr, rows: str) -> bool:
    """Whether what is made of each row of `picked` is written to the same `rows` of another: `y[rows] = z[x[rows] - 1]`."""
    parent = source.parents[picked]
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
        return (
            isinstance(target, ast.Subscript)
            and isinstance(target.slice, ast.Name)
            and target.slice.id == rows
        )
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is picked else parent.left
        return isinstance(other, ast.Constant) and _is_written_to(source, parent, rows)
    if isinstance(parent, ast.Subscript) and parent.slice is picked and isinstance(parent.ctx, ast.Load):
        return _is_written_to(source, parent, rows)
    if isinstance(parent, ast.Attribute) and parent.attr in _CONVERTING:
        call = source.parents[parent]
        plain = isinstance(call, ast.Call) and not call.args and not call.keywords
        return isinstance(call, ast.Call) and plain and _is_written_to(source, call, rows)
    return False
