"""Recurrent layers in the arms of a branch: both arms run, and torch.where takes what the branch would give.

Measured on torch 2.13: torch.cond and while_loop compile what they run in eager too, where an LSTM, a GRU or an RNN stops
the compiler; non-strict tracing stops where such a layer gathers its weights inside of an arm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from exportlens.inference.values import ClassValue, Instance, Named, Value
from exportlens.inference.values import Sequence as Values
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

_LAYERS = frozenset({"LSTM", "GRU", "RNN"})
# What may fail, not know its size, or draw numbers, where the branch would not have run it.
_ONLY_WHERE_ASKED = frozenset(
    {
        "_assert",
        "_assert_async",
        "_check",
        "argwhere",
        "bernoulli",
        "item",
        "masked_select",
        "multinomial",
        "nonzero",
        "normal",
        "pack_padded_sequence",
        "rand",
        "rand_like",
        "randint",
        "randn",
        "randn_like",
        "randperm",
        "repeat_interleave",
        "rsample",
        "sample",
        "tolist",
        "unique",
        "unique_consecutive",
        "while_loop",
    }
)


def runs_recurrent_layer(statements: Sequence[ast.stmt], kinds: Kinds) -> bool:
    """Whether `statements` call a recurrent layer of torch's, by themselves or through modules and methods."""
    return _runs(statements, kinds, set())


def refuse_recurrent_layer(nodes: Sequence[ast.AST], kinds: Kinds) -> None:
    """Raise Refused where `nodes` call one."""
    if _runs(nodes, kinds, set()):
        raise Refused(
            "it runs an LSTM, a GRU or an RNN of torch's, which no operator of control flow takes: run the layer before it"
        )


def chosen_of_both(
    statements: Sequence[ast.stmt],
    test: str,
    arms: Sequence[str],
    kinds: Kinds,
    torch: str,
    what: str = "a recurrent layer",
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


def _runs(nodes: Iterable[ast.AST], kinds: Kinds, seen: set[int]) -> bool:
    nodes = list(nodes)
    named = (each for node in nodes for each in walk(node) if isinstance(each, (ast.Assign, ast.NamedExpr)))
    for value in (kinds.of(each.value).value for each in named):
        # `cell = self.cells[0]`, which is called by that name.
        if value is not None and _is_recurrent(value, seen):
            return True
    for call in (each for node in nodes for each in walk(node) if isinstance(each, ast.Call)):
        # What is handed to a function, too: it reads the weights.
        for each in (call.func, *call.args, *(one.value for one in call.keywords)):
            value = kinds.of(each).value
            if value is not None and _is_recurrent(value, seen):
                return True
        function = kinds.functions.get(dotted(call.func) or "")
        if function is not None and id(function) not in seen:
            seen.add(id(function))
            inside = kinds.inside_of_own(function)
            if _runs(function.body, inside, seen):
                return True
    return False


def _is_recurrent(value: Value, seen: set[int]) -> bool:
    """Whether `value` is a recurrent layer of torch's, or a module that holds one."""
    if not isinstance(value, Instance) or id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value.cls, Named):
        head, _, last = value.cls.name.rpartition(".")
        if head.startswith("torch.nn") and last in _LAYERS:
            return True
    elif not isinstance(value.cls, ClassValue):
        return False
    return any(_is_recurrent(each, seen) for held in value.attributes.values() for each in _parts(held))


def _parts(value: Value) -> Iterator[Value]:
    if isinstance(value, Values):
        yield from value.items or ()
    else:
        yield value
