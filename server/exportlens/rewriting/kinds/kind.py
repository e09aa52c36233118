"""A kind: what one value of the code at hand is, as far as a rewrite must know it."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from exportlens.inference import knowledge
from exportlens.inference.knowledge import UNKNOWN, Op, Returns, TensorFacts
from exportlens.inference.lattice import alike, join
from exportlens.inference.values import (
    Array,
    Bound,
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Named,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Unknown,
    Value,
)
from exportlens.rewriting.code.ranges import written_int


@dataclass(frozen=True, slots=True)
class Kind:
    """`what`: "tensor", "scalar" (a Python number from tensor data), "size", "number", "none", "static",
    "container", "object", "unknown".

    `roots` are the names and attribute paths whose memory a tensor may share (empty: memory of its own;
    None: not known). `type` is int, float, bool or "" for numbers; `items` the parts of a container where
    they are known, `keys` their keys in a dict. `moved` says that the dimensions of a tensor may lie in memory in
    another order, as those of a transposed one do, and `parted` that there may be gaps between its elements, as where it
    is a column: torch.cond and while_loop take none from an arm. One that is `later` may begin behind the beginning of its memory,
    as the last row does: torch.cond takes from both arms what begins alike.
    """

    what: str
    dtype: str | None = None
    rank: int | None = None
    roots: frozenset[str] | None = frozenset()
    type: str = ""
    items: tuple[Kind, ...] | None = None
    value: Value | None = None
    keys: tuple[str | int, ...] = ()
    moved: bool = False
    parted: bool = False
    later: bool = False

    @property
    def fresh(self) -> bool:
        return self.roots == frozenset()

    @property
    def from_data(self) -> bool:
        return self.what in ("tensor", "scalar")

    @property
    def facts(self) -> Any:
        if self.what == "tensor":
            return TensorFacts(
                self.dtype if self.dtype not in ("float", "int", "complex") else None, self.rank
            )
        if self.what == "number" and isinstance(self.value, Const):
            return self.value.value
        if self.what == "none":
            return None
        if self.what == "static" and isinstance(self.value, Const) and isinstance(self.value.value, str):
            return self.value.value
        if self.what == "static" and isinstance(self.value, Named):
            return knowledge.lookup_constant(self.value.name) or UNKNOWN
        if self.what == "container" and self.items is not None:
            return tuple(item.facts for item in self.items)
        return UNKNOWN


# Roots of memory that was made while following the code itself: LOCAL and a number.
LOCAL = "~"
numbers = itertools.count()
UNKNOWN_KIND = Kind("unknown", roots=None)
# What numbers of Python are.
OF_NUMBERS = frozenset({"scalar", "number", "size"})
# The `type` of what is one of several different things, which are its `items`.
SEVERAL = "several"
# The `type` of a list that certainly has an item, and not tensors alone.
FILLED = "filled"
# The `type` of what NumPy's functions give, a number or an array.
NUMPY = "numpy"
# The `type` of a function that calls itself for the rounds of a loop.
AGAIN = "again"


def of_value(value: Value | None, root: str) -> Kind:
    """The kind of an interpreter's value that the code reaches as `root`."""
    if isinstance(value, Tensor):
        return Kind("tensor", value.dtype, value.rank, frozenset({root}), value=value)
    if isinstance(value, TensorScalar):
        return Kind("scalar", type=value.type)
    if isinstance(value, Shape):
        return Kind("scalar" if value.unbacked else "size", type=value.type)
    if isinstance(value, Const):
        if value.value is None:
            return Kind("none")
        if isinstance(value.value, (bool, int, float)):
            return Kind("number", type=type(value.value).__name__, value=value)
        return Kind("static", value=value)
    if isinstance(value, Static):
        return Kind("number" if value.type in ("int", "float", "bool") else "static", type=value.type)
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(of_value(item, root) for item in value.items)
        return Kind("container", roots=frozenset({root}), items=items, value=value)
    if isinstance(value, (Mapping_, Array)):
        return Kind("container", roots=frozenset({root}), value=value)
    if isinstance(value, (Instance, Function, ClassValue, Named, Bound)):
        return Kind("object", roots=frozenset({root}), value=value)
    if isinstance(value, Choice):
        kinds = [of_value(option, root) for option in value.options]
        return merged(kinds)
    return Kind("unknown", roots=frozenset({root}), value=value)


def merged(kinds: list[Kind]) -> Kind:
    """What a name is that is one of `kinds`, depending on the way taken."""
    first = kinds[0]
    if all(kind is first for kind in kinds):
        return first
    if any(kind.what != first.what for kind in kinds):
        whats = {kind.what for kind in kinds}
        if whats <= {"number", "size", "scalar"}:
            types = {kind.type for kind in kinds}
            return Kind("scalar" if "scalar" in whats else "size", type=first.type if len(types) == 1 else "")
        certain = all(kind.what != "unknown" or kind.type == SEVERAL for kind in kinds)
        if not certain:
            return replace(UNKNOWN_KIND, roots=union(kinds))
        return replace(UNKNOWN_KIND, roots=union(kinds), type=SEVERAL, items=_options(kinds))
    if all(kind.type == SEVERAL for kind in kinds):
        return replace(first, roots=union(kinds), items=_options(kinds))
    return Kind(
        first.what,
        first.dtype if all(kind.dtype == first.dtype for kind in kinds) else None,
        first.rank if all(kind.rank == first.rank for kind in kinds) else None,
        union(kinds),
        first.type if all(kind.type == first.type for kind in kinds) else "",
        _merged_items(kinds),
        _merged_value(kinds),
        first.keys if all(kind.keys == first.keys for kind in kinds) else (),
        any(kind.moved for kind in kinds),
        any(kind.parted for kind in kinds),
        any(kind.later for kind in kinds),
    )


def _merged_value(kinds: list[Kind]) -> Value | None:
    values = [kind.value for kind in kinds]
    if all(value is values[0] for value in values):
        return values[0]
    first = values[0]
    if isinstance(first, Sequence):
        alike = (
            isinstance(each, Sequence) and (each.kind, each.fields) == (first.kind, first.fields)
            for each in values
        )
        # Which items it has is told by those of the kinds.
        element = joined_items(kinds)
        return Sequence(first.kind, None, element, fields=first.fields) if all(alike) else None
    if all(is_given(kind) for kind in kinds):
        return Unknown("one of several arguments", given="part")
    modules = [value for value in values if isinstance(value, Instance)]
    return one_of(modules) if len(modules) == len(values) else None


def holds_tensors_alone(kind: Kind) -> bool:
    """Whether all that is in a container is tensors, however many."""
    if kind.items is not None:
        return all(item.what == "tensor" for item in kind.items)
    value = kind.value
    if isinstance(value, Mapping_):
        held = value.items.values()
        return value.kind == "dict" and value.rest is None and all(isinstance(each, Tensor) for each in held)
    return (
        isinstance(value, Sequence) and value.kind in ("list", "tuple") and isinstance(value.element, Tensor)
    )


def is_filled(kind: Kind) -> bool:
    """Whether it is a list that certainly has an item, of which not all items are known one by one."""
    return kind.what == "container" and kind.items is None and kind.type in ("tensors", FILLED)


def joined_items(owners: list[Kind], added: Collection[Kind] = ()) -> Value | None:
    """What each item is of a list that is one of `owners`, where `added` are among them; None where that is not known."""
    held: list[Value | None] = [_told_of(each) for each in added]
    for each in owners:
        if each.items is not None:
            held += map(_told_of, each.items)
        elif isinstance(each.value, Sequence) and each.type != "tensors":
            held.append(each.value.element)
        else:
            held.append(_told_of(element_of(each)))
    known = [each for each in held if each is not None]
    if len(known) < len(held):
        return None
    joined = alike(functools.reduce(join, known)) if known else Tensor()
    return None if isinstance(joined, Unknown) else joined


def _told_of(kind: Kind) -> Value | None:
    """What a list tells of an item of the kind `kind`, whichever it is; None where that is nothing."""
    if kind.what == "tensor":
        return Tensor(dtype=kind.dtype, rank=kind.rank)
    if kind.what in ("number", "size") and kind.type:
        return Static(kind.type)
    if kind.what == "scalar":
        return TensorScalar(kind.type)
    if kind.what == "container" and kind.items is not None and not kind.keys:
        parts = [_told_of(each) for each in kind.items]
        return None if None in parts else Sequence("tuple", [each for each in parts if each is not None])
    return None


def with_item(owner: Kind, key: ast.expr, item: Kind) -> Kind:
    """The list `owner` behind `owner[key] = item`."""
    at = written_int(key)
    if owner.items is not None and at is not None and -len(owner.items) <= at < len(owner.items):
        items = list(owner.items)
        items[at] = item
        return replace(owner, items=tuple(items), roots=union([owner, item]), value=None)
    value = owner.value
    if isinstance(value, Sequence):
        value = Sequence(
            value.kind, None, None if isinstance(key, ast.Slice) else joined_items([owner], [item])
        )
    return replace(owner, items=None, roots=union([owner, item]), value=value)


def is_given(kind: Kind) -> bool:
    """Whether it is an argument of the model of which nothing is known, or a part of one: what is asked of it tells what it is."""
    value = kind.value
    return (
        kind.what == "unknown"
        and isinstance(value, Unknown)
        and (value.argument != "" or value.given == "part")
    )


def one_of(modules: list[Instance]) -> Instance | None:
    """What stands for any of `modules`, where all are alike as far as their results go."""
    first = modules[0]
    if all(each is first for each in modules):
        return first
    if isinstance(first.cls, ClassValue):
        made = first.fingerprint is not None and first.stamp == 0
        same = all(each.fingerprint == first.fingerprint and each.stamp == 0 for each in modules)
        return first if made and same else None
    names = {each.cls.name for each in modules if isinstance(each.cls, Named)}
    all_named = all(isinstance(each.cls, Named) for each in modules)
    in_place = any("inplace" in each.arguments for each in modules)
    return first if all_named and len(names) == 1 and not in_place else None


def _options(kinds: list[Kind]) -> tuple[Kind, ...] | None:
    """All that one of `kinds` may be, None where that is not known of one of them."""
    rows = [kind.items if kind.type == SEVERAL else (kind,) for kind in kinds]
    known = [row for row in rows if row is not None]
    return tuple(each for row in known for each in row) if len(known) == len(rows) else None


def may_be_none(kind: Kind) -> bool:
    """Whether one of the ways to what is of `kind` gives None, as far as they are known."""
    return kind.type == SEVERAL and any(each.what == "none" for each in kind.items or ())


def _merged_items(kinds: list[Kind]) -> tuple[Kind, ...] | None:
    """The parts of containers that have equally many, each as it is on one of the ways."""
    rows = [kind.items for kind in kinds if kind.items is not None and kind.keys == kinds[0].keys]
    if len(rows) != len(kinds) or len({len(each) for each in rows}) != 1:
        return None
    return tuple(merged(list(column)) for column in zip(*rows, strict=True))


def extreme(kinds: list[Kind]) -> Kind:
    """One of several values, of which data decides which where one of them is a number from data."""
    one_type = len({kind.type for kind in kinds}) == 1
    if one_type and {kind.what for kind in kinds} <= {"scalar", "number", "size"} and len(kinds) > 1:
        whats = [kind.what for kind in kinds]
        what = next(each for each in ("scalar", "size", "number") if each in whats)
        return Kind(what, type=kinds[0].type)
    return merged(kinds)


def merged_names(ways: list[dict[str, Kind]]) -> dict[str, Kind]:
    """What names are behind a branch, `ways` being what they are at the end of each arm that goes on."""
    first, *others = ways
    if not others:
        return first
    names = dict.fromkeys(name for way in ways for name in way)
    return {name: merged([way.get(name, UNKNOWN_KIND) for way in ways]) for name in names}


def kept(kind: Kind) -> Kind:
    """What a name keeps of `kind`: memory of its own is from now on shared with whatever is made from that name."""
    if kind.what == "container" and kind.items is not None:
        items = tuple(map(kept, kind.items))
        if all(one is other for one, other in zip(items, kind.items, strict=True)):
            return kind
        # What the container itself shares is no less than what it holds.
        return replace(kind, items=items, roots=union([replace(kind, items=None), *items]))
    if kind.what in ("tensor", "container") and kind.fresh:
        return replace(kind, roots=frozenset({f"{LOCAL}{next(numbers)}"}))
    return kind


def union(kinds: list[Kind]) -> frozenset[str] | None:
    roots: frozenset[str] = frozenset()
    for kind in kinds:
        if kind.roots is None:
            return None
        roots |= kind.roots
    return roots


def length_from_data(kind: Kind) -> bool:
    """Whether the first dimension depends on tensor data: of what a mask selects, of what `nonzero` finds."""
    return kind.what == "tensor" and isinstance(kind.value, Tensor) and kind.value.unbacked


def _of_memory(kind: Kind, roots: frozenset[str] | None) -> Kind:
    """`kind`, which is a part of what has the memory `roots`."""
    items = None if kind.items is None else tuple(_of_memory(each, roots) for each in kind.items)
    return replace(kind, roots=roots, items=items)


def element_of(kind: Kind) -> Kind:
    """What iterating or unpacking gives."""
    if kind.what == "tensor":
        rank = None if kind.rank is None else kind.rank - 1
        return Kind("tensor", kind.dtype, rank, kind.roots, parted=kind.parted, later=True)
    if kind.what == "container":
        if kind.items:
            return merged(list(kind.items))
        if kind.type == "tensors":
            each = kind.value.element if isinstance(kind.value, Sequence) else None
            known = of_value(each, "") if isinstance(each, Tensor) else Kind("tensor")
            value = each if isinstance(each, Tensor) and each.unbacked else None
            return Kind(
                "tensor",
                known.dtype,
                known.rank,
                kind.roots,
                value=value,
                parted=kind.parted,
                later=kind.later,
            )
        if isinstance(kind.value, Sequence) and kind.value.element is not None:
            return _of_memory(of_value(kind.value.element, ""), kind.roots)
    if kind.what == "static" and kind.type == "size":
        return Kind("size", type="int")
    if is_given(kind):
        return replace(UNKNOWN_KIND, value=Unknown("an element of an argument", given="part"))
    return UNKNOWN_KIND


def returned(returns: Returns, tensor: Kind, bound: Any, op: Op | None) -> Kind:
    if returns.kind == "tensor":
        return replace(tensor, what="tensor")
    if returns.kind in ("tuple", "list"):
        items = (
            tuple(returned(item, _part(item, tensor, bound), None, None) for item in returns.items)
            if returns.kind == "tuple"
            else None
        )
        return Kind(
            "container",
            roots=tensor.roots,
            items=items,
            type="tensors" if _holds_tensors(returns) else "",
            value=_any_of_list(returns, tensor, bound),
            parted=tensor.parted,
            later=tensor.later or bool(op is not None and op.aliases),
        )
    if returns.kind in ("int", "float", "bool", "number"):
        if op is not None and op.data_dependent:
            return Kind("scalar", type="" if returns.kind == "number" else returns.kind)
        return Kind("size" if returns.kind == "int" else "number", type=returns.kind)
    if returns.kind == "self":
        return tensor
    if returns.kind == "size":
        return Kind("static", type="size")
    if returns.kind == "none":
        return Kind("none")
    if returns.kind == "any":
        return UNKNOWN_KIND
    return Kind("static")


def _part(returns: Returns, whole: Kind, bound: Any) -> Kind:
    """One of several tensors that a call gives."""
    rank = None if bound is None else knowledge.rank_after(returns.rank, bound)
    # Of indices that torch sorts it is not said that they are whole where they may be one number: they index as lists do. Those of
    # what is taken of a dimension, `t.min(dim=0)`, are one number wherever `t` is a row.
    taken = (returns.rank or "").startswith("reduce")
    told = bound is not None and (rank is not None or returns.dtype != "=int64" or taken)
    dtype = knowledge.dtype_after(returns.dtype, bound) if told else None
    return Kind("tensor", dtype, rank, whole.roots, value=whole.value, moved=whole.moved)


def _any_of_list(returns: Returns, whole: Kind, bound: Any) -> Sequence | None:
    """A list of any number of tensors that a call gives, as what each of them is; None where it gives no such list."""
    if returns.kind != "list" or len(returns.items) != 1 or returns.items[0].kind != "tensor":
        return None
    each = _part(returns.items[0], whole, bound)
    return Sequence("list", None, Tensor(dtype=each.dtype, rank=each.rank, unbacked=length_from_data(whole)))


def _holds_tensors(returns: Returns) -> bool:
    return bool(returns.items) and all(item.kind == "tensor" for item in returns.items)


def binary_dtype(op: ast.operator, left: Kind, right: Kind) -> str | None:
    operands = [_in_arithmetic(kind) for kind in (left, right)]
    promoted = None if UNKNOWN in operands else knowledge.promote(operands)
    if promoted is None and (isinstance(op, ast.Div) or "float" in (left.type, right.type)):
        # Of some float dtype, whatever the other operand is.
        return "float"
    if promoted is None and "float" in (left.dtype, right.dtype) and _is_real(left) and _is_real(right):
        return "float"
    if (
        isinstance(op, ast.Div)
        and promoted is not None
        and not promoted.startswith(("float", "bfloat", "complex"))
    ):
        return "float32"
    return promoted


# A number of each type: beside a tensor it counts by its type alone.
_NUMBERS = {"float": 1.0, "int": 1, "bool": True}


def _in_arithmetic(kind: Kind) -> Any:
    """The facts of an operand; those of any number of the type where it is a number of Python's that is not known."""
    facts = kind.facts
    if facts is UNKNOWN and kind.what in ("number", "size", "scalar"):
        return _NUMBERS.get(kind.type or "", UNKNOWN)
    return facts


def _is_real(kind: Kind) -> bool:
    """Whether an operand is known to be of no complex dtype."""
    if kind.what == "tensor":
        return kind.dtype is not None and not kind.dtype.startswith("complex")
    return kind.what in ("number", "size", "scalar") and kind.type in ("int", "float", "bool")


def binary_rank(op: ast.operator, left: Kind, right: Kind) -> int | None:
    if isinstance(op, ast.MatMult):
        return knowledge.rank_after("matmul", {"self": left.facts, "other": right.facts})
    ranks = [kind.rank if kind.what == "tensor" else 0 for kind in (left, right)]
    return None if None in ranks else max(rank for rank in ranks if rank is not None)
