"""Calls of collections, itertools and functools that the interpreter answers itself."""

from __future__ import annotations

import ast
import itertools
import math

from exportlens.inference.builtin_calls import Run, hashed, make_sequence
from exportlens.inference.iteration import elements_of
from exportlens.inference.lattice import element_of, join
from exportlens.inference.machine import Frame, Machine
from exportlens.inference.places import Truth
from exportlens.inference.values import (
    Const,
    Mapping_,
    Native,
    Sequence,
    Static,
    TensorScalar,
    Unknown,
    Value,
    from_data,
)

# More of them are told apart by nothing but what they have in common.
_MAX_ITEMS = 64


def _named_tuple(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs, frame, node
    name = args[0].value if args and isinstance(args[0], Const) else "namedtuple"
    given = args[1] if len(args) > 1 else None
    names: list[str] = []
    if isinstance(given, Const) and isinstance(given.value, str):
        names = given.value.replace(",", " ").split()
    elif isinstance(given, Sequence) and given.items is not None:
        names = [str(item.value) for item in given.items if isinstance(item, Const)]

    def make(m: Machine, a: list[Value], k: dict[str, Value], f: Frame, n: ast.AST) -> Value:
        del m, f, n
        bound: dict[str, Value] = {field: Unknown(f"the field `{field}`") for field in names}
        bound.update(zip(names, a, strict=False))
        bound.update({key: value for key, value in k.items() if key in bound})
        return Sequence("tuple", list(bound.values()), None, str(name), tuple(names))

    del machine
    return Native(str(name), make)


def _chain(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    items: list[Value] | None = []
    cover: Value | None = None
    for value in args:
        found, element = elements_of(machine, value, frame, node)
        items = None if items is None or found is None else [*items, *found]
        cover = element if cover is None else join(cover, element)
    return Sequence("generator", items, cover if items is None else None)


def _chain_nested(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    items, element = elements_of(machine, args[0], frame, node) if args else ([], Unknown("chain()"))
    return _chain(machine, items if items is not None else [element], kwargs, frame, node)


def _default_dict(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del machine, kwargs, frame, node
    given = args[1] if len(args) > 1 else None
    items = dict(given.items) if isinstance(given, Mapping_) else {}
    rest = given.rest if isinstance(given, Mapping_) else Unknown("given to a defaultdict") if given else None
    factory = args[0] if args and not (isinstance(args[0], Const) and args[0].value is None) else None
    return Mapping_(items, rest, "defaultdict", factory)


def _deque(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    made = make_sequence("list")(machine, args[:1], {}, frame, node)
    longest = args[1] if len(args) > 1 else kwargs.get("maxlen", Const(None))
    if longest == Const(None) or not isinstance(made, Sequence):
        return made
    # What is appended drops what came first.
    return Sequence("list", None, element_of(made) if made.items != [] else Unknown("an item of a deque"))


def _counter(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`collections.Counter(items)`: how often there is each of them, which only the running model knows of numbers from data."""
    if not args and not kwargs:
        return Mapping_({}, Static("int"), "Counter")
    if not args or kwargs or isinstance(args[0], Mapping_):
        return Unknown("collections.Counter()")
    element = elements_of(machine, args[0], frame, node)[1]
    hashed(machine, element, frame, node)
    return Mapping_({}, TensorScalar("int", "a tensor") if from_data(element) else Static("int"), "Counter")


def _reduce(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    from exportlens.inference.calls import call_value

    del kwargs
    if len(args) < 2:
        return Unknown("functools.reduce()")
    items, element = elements_of(machine, args[1], frame, node)
    values = [*args[2:3], *(items if items is not None else [element, element])]
    if not values:
        return Unknown("functools.reduce() of nothing")
    result = values[0]
    for value in values[1:]:
        result = call_value(machine, args[0], [result, value], {}, frame, node)
    return result


def _pairwise(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    del kwargs
    if not args:
        return Unknown("itertools.pairwise()")
    items, element = elements_of(machine, args[0], frame, node)
    if items is None:
        return Sequence("generator", None, Sequence("tuple", [element, element]))
    return Sequence("generator", [Sequence("tuple", list(pair)) for pair in itertools.pairwise(items)])


def _groupby(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`itertools.groupby(items)`: runs of equal ones. Each is compared with the one before, which data decides where it gave them."""
    from exportlens.inference.calls import call_value

    if not args:
        return Unknown("itertools.groupby()")
    items, element = elements_of(machine, args[0], frame, node)
    key = args[1] if len(args) > 1 else kwargs.get("key", Const(None))
    compared = element if key == Const(None) else call_value(machine, key, [element], {}, frame, node)
    several = items is None or len(items) > 1
    if several and from_data(compared) and machine.emits(Truth):
        machine.notice(Truth(machine.site(frame), node, compared, "in", node, frame.visible()))
    return Sequence("generator", None, Sequence("tuple", [compared, Sequence("list", None, element)]))


def _combinations(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`itertools.combinations(items, 2)`, and its kin: as many tuples of as many items."""
    many = args[1] if len(args) > 1 else kwargs.get("r", Const(None))
    if not args or not isinstance(many, Const) or not isinstance(many.value, int):
        return Unknown("itertools.combinations()")
    items, element = elements_of(machine, args[0], frame, node)
    if items is None or math.comb(len(items), min(many.value, len(items))) > _MAX_ITEMS:
        return Sequence("generator", None, Sequence("tuple", [element] * many.value))
    found = itertools.combinations(items, many.value)
    return Sequence("generator", [Sequence("tuple", list(each)) for each in found])


def _product(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    found = [elements_of(machine, value, frame, node) for value in args]
    if kwargs or not found:
        return Unknown("itertools.product()")
    items = [each for each, _ in found if each is not None]
    if len(items) < len(found) or math.prod(map(len, items)) > _MAX_ITEMS:
        return Sequence("generator", None, Sequence("tuple", [element for _, element in found]))
    return Sequence("generator", [Sequence("tuple", list(each)) for each in itertools.product(*items)])


def _of_the_same(
    machine: Machine, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> Value:
    """`itertools.islice(items, 3)`, `itertools.cycle(items)`: some of the items, nobody says how many."""
    del kwargs
    if not args:
        return Unknown("a function of itertools")
    return Sequence("generator", None, elements_of(machine, args[0], frame, node)[1])


COLLECTIONS: dict[str, Run] = {
    "collections.Counter": _counter,
    "collections.defaultdict": _default_dict,
    "collections.deque": _deque,
    "collections.namedtuple": _named_tuple,
    "functools.reduce": _reduce,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_nested,
    "itertools.combinations": _combinations,
    "itertools.cycle": _of_the_same,
    "itertools.groupby": _groupby,
    "itertools.islice": _of_the_same,
    "itertools.pairwise": _pairwise,
    "itertools.product": _product,
}
