"""Branches that torch.cond does not take: both arms run, and torch.where takes what the branch would give."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.inference.attributes import AUTOGRAD_FUNCTIONS
from exportlens.inference.values import Instance, Named, Value
from exportlens.inference.values import Sequence as Values
from exportlens.rewriting.arms.recurrent_layers import runs_recurrent_layer
from exportlens.rewriting.branches.unused_draws import DRAWING
from exportlens.rewriting.calls.unfaked_operators import unfaked_operator
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

# What may fail, not know its size, or draw numbers, where the branch would not have run it.
_ONLY_WHERE_ASKED = DRAWING | {
    "_assert",
    "_assert_async",
    "_check",
    "argwhere",
    "item",
    "masked_select",
    "nonzero",
    "pack_padded_sequence",
    "repeat_interleave",
    "sample",
    "tolist",
    "unique",
    "unique_consecutive",
    "while_loop",
}


# Layers that count what they are given while training.
_COUNTING = ("BatchNorm", "SyncBatchNorm", "LazyBatchNorm", "InstanceNorm", "LazyInstanceNorm")


def why_both(statements: Sequence[ast.stmt], kinds: Kinds, casts: bool, in_gradient: bool) -> str:
    """What of a branch, whose arms are `statements`, torch.cond does not take; "" where it takes it. `casts`: torch.autocast is in
    force, for whose dtypes strict export of torch 2.13 does not look in the arms; `in_gradient`: it stands in an arm of another, in
    an autograd Function, which runs without gradients (operators in one another fail there, "no attribute 'true_graph_0'")."""
    if runs_recurrent_layer(statements, kinds):
        return "a recurrent layer"
    operator = unfaked_operator(statements, kinds)
    if operator:
        return f"`{operator}`"
    if not casts and not in_gradient:
        return ""
    what = (
        "what torch.autocast chooses dtypes for"
        if casts
        else "in an arm of another branch of an autograd Function"
    )
    _refuse_counting(statements, kinds, what, set())
    return what


def defines_gradient(cls: ast.ClassDef, kinds: Kinds) -> bool:
    """Whether `cls` is written as an autograd Function."""
    return any(kinds.qualified(base) in AUTOGRAD_FUNCTIONS for base in cls.bases)


def _refuse_counting(nodes: Sequence[ast.AST], kinds: Kinds, what: str, seen: set[int]) -> None:
    """Raise Refused where an arm leaves something in a layer that the branch would not have run, or checks something."""
    for call in (each for node in nodes for each in walk(node) if isinstance(each, ast.Call)):
        value = kinds.of(call.func).value
        if value is not None and _counts(value, set()):
            raise Refused(f"it runs {what}, and a layer that keeps statistics")
        function = kinds.functions.get(dotted(call.func) or "")
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        inside = kinds.inside_of_own(function)
        _refuse_only_where_asked(function.body, inside, what)
        _refuse_counting(function.body, inside, what, seen)


def _counts(value: Value, seen: set[int]) -> bool:
    if isinstance(value, Values):
        return any(_counts(each, seen) for each in value.items or ())
    if not isinstance(value, Instance) or id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value.cls, Named) and value.cls.name.rpartition(".")[2].startswith(_COUNTING):
        return True
    return any(_counts(each, seen) for each in value.attributes.values())


def chosen_of_both(
    statements: Sequence[ast.stmt],
    test: str,
    arms: Sequence[str],
    kinds: Kinds,
    torch: str,
    what: str,
) -> str:
    """The text that gives what the branch gives, where the functions `arms` run both and have no effects. Raises Refused where
    an arm may fail that the branch would not have run; `what` is why torch.cond takes them not."""
    condition = parse_python(test, mode="eval").body
    if isinstance(condition, ast.Call) and dotted(condition.func) == f"{torch}.sym_not":
        # The opposite of a number of Python: the arms change places.
        asked = ast.unparse(condition.args[0])
        return chosen_of_both(statements, asked, [*reversed(arms)], kinds, torch, what)
    tensor = kinds.of(condition)
    answer = tensor.what == "scalar" and (tensor.type == "bool" or isinstance(condition, ast.Compare))
    if tensor.what != "tensor" and not answer:
        raise Refused(f"it runs {what}, and its condition is no tensor")
    _refuse_only_where_asked(statements, kinds, what)
    taken = reads(condition)
    one, other = fresh("one", taken), fresh("other", taken)
    where = test if tensor.rank == 0 else f"({test}).reshape(())"
    if answer:
        where = f"{torch}.full((), {test}, dtype={torch}.bool)"
    elif tensor.dtype != "bool":
        where = f"{primary(where)}.bool()"
    return (
        f"{torch}.utils._pytree.tree_map(lambda {one}, {other}: {torch}.where({where}, {one}, {other}), "
        f"{arms[0]}(), {arms[1]}())"
    )


def _refuse_only_where_asked(statements: Sequence[ast.stmt], kinds: Kinds, what: str) -> None:
    """Raise Refused where something may fail, or draw numbers, that the branch would not have run."""
    for each in (node for statement in statements for node in walk(statement)):
        called = isinstance(each, ast.Call) and str(getattr(each.func, "attr", getattr(each.func, "id", "")))
        if called in _ONLY_WHERE_ASKED or (called == "where" and len(each.args) == 1):  # type: ignore[attr-defined]
            raise Refused(f"it runs {what}, and `{called}` only fits where the branch is taken")
        if isinstance(each, ast.Subscript) and _may_be_mask(each.slice, kinds):
            raise Refused(f"it runs {what}, and picks rows by a mask")
        if isinstance(each, ast.Subscript) and (counted := _counted_in(each.slice, statements)):
            raise Refused(
                f"it runs {what}, and picks by `{counted}`, which may be beyond the end where the branch is not taken"
            )
        if isinstance(each, ast.Name) and kinds.of(each).what == "scalar":
            raise Refused(
                f"it runs {what}, and computes with `{each.id}`, a number from data that may not fit"
            )


def _counted_in(index: ast.expr, statements: Sequence[ast.stmt]) -> str:
    """The name of a round's number by which `index` picks one item; "" where there is none."""
    counted = {
        each.target.id
        for statement in statements
        for each in walk(statement)
        if isinstance(each, ast.For) and isinstance(each.target, ast.Name)
    }
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    names = (
        one.id
        for each in parts
        if not isinstance(each, ast.Slice)
        for one in walk(each)
        if isinstance(one, ast.Name)
    )
    return next((name for name in names if name in counted), "")


def _may_be_mask(index: ast.expr, kinds: Kinds) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for each in parts:
        if isinstance(each, (ast.Compare, ast.Invert)) or (
            isinstance(each, (ast.UnaryOp, ast.BinOp))
            and isinstance(each.op, (ast.Invert, ast.BitAnd, ast.BitOr))
        ):
            return True
        if isinstance(each, (ast.Name, ast.Attribute)) and kinds.of(each).dtype in ("bool", "uint8"):
            return True
    return False
