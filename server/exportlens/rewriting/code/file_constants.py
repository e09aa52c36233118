"""The numbers, and the lists, tuples and dicts of such, that a file gives a name of its own, once and for all: `LIMITS = (5.0, 30.0)`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from exportlens.inference.values import Const, Mapping_, Sequence, Value
from exportlens.rewriting.code.computed_constants import computed
from exportlens.rewriting.code.names import arguments, assigned_pairs
from exportlens.rewriting.kinds.kind import Kind, of_value
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

# Longer tables are data, of which no branch has a way for each.
_MOST_ITEMS = 64


@dataclass(frozen=True, slots=True)
class _Names:
    """What one chunk says of names: the values that it gives them, what it computes of other names, how often it binds each, and those
    whose items it may change."""

    values: Mapping[str, Value]
    computed: Mapping[str, ast.expr]
    bound: Counter[str]
    changed: frozenset[str]


_known: WeakKeyDictionary[Chunk, _Names] = WeakKeyDictionary()


def constants_of(chunks: Iterable[Chunk]) -> dict[str, Kind]:
    """The kinds of the constants of a file that consists of `chunks`. One whose name is bound anywhere else, as by a function that has
    a local of that name, or that is used as more than a table to read, is not among them."""
    parts = [_names_of(each) for each in chunks]
    found = {name: value for each in parts for name, value in each.values.items()}
    if not found and not any(each.computed for each in parts):
        return {}
    bound: Counter[str] = Counter()
    for each in parts:
        bound += each.bound
    changed = {name for each in parts for name in each.changed}
    for each in parts:
        once = {name: found[name] for name in found if bound[name] == 1}
        for name, node in each.computed.items():
            value = computed(node, once)
            if value is not None:
                found[name] = value
    return {
        name: of_value(value, name)
        for name, value in found.items()
        if bound[name] == 1 and name not in changed
    }


def _names_of(chunk: Chunk) -> _Names:
    names = _known.get(chunk)
    if names is None:
        names = _known[chunk] = _read(chunk)
    return names


def _read(chunk: Chunk) -> _Names:
    values: dict[str, Value] = {}
    open_values: dict[str, ast.expr] = {}
    for each in chunk.body:
        for target, given in _pairs(each):
            value = _value(given)
            if value is not None:
                values[target] = value
            elif isinstance(given, (ast.BinOp, ast.UnaryOp, ast.Call, ast.Attribute)):
                open_values[target] = given
    bound: Counter[str] = Counter()
    changed: set[str] = set()
    for top in chunk.body:
        for node in walk(top):
            bound.update(_bound_by(node))
            changed.update(_changed_by(node))
    return _Names(values, open_values, bound, frozenset(changed))


def _pairs(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that `statement` gives values, each with what it is given: `LOW, HIGH = 40, 120` gives two."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return
    # A list of two names may change by either.
    several = isinstance(statement, ast.Assign) and len(statement.targets) > 1
    if several and statement.value is not None and not isinstance(_value(statement.value), Const):
        return
    yield from (
        (target.id, value) for target, value in assigned_pairs(statement) if isinstance(target, ast.Name)
    )


def _bound_by(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        own = [] if isinstance(node, ast.Lambda) else [node.name]
        return [*own, *(each.arg for each in arguments(node.args))]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(each.asname or each.name).partition(".")[0] for each in node.names]
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return [node.name] if isinstance(node, ast.ClassDef) else []


def _changed_by(node: ast.AST) -> Iterable[str]:
    """The names whose items `node` may change: those that an item is set of, and those of which a method is called that is no reading."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return [each.id for each in walk(node.value) if isinstance(each, ast.Name)]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        reading = node.attr in ("items", "keys", "values", "get", "index", "count", "copy")
        return [] if reading else [node.value.id]
    return []


def _value(node: ast.expr) -> Value | None:
    """The number that `node` writes, or the list, tuple or dict of such; None where it is anything else."""
    if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) <= _MOST_ITEMS:
        items = [_value(each) for each in node.elts]
        known = [each for each in items if each is not None]
        kind = "tuple" if isinstance(node, ast.Tuple) else "list"
        return Sequence(kind, known) if len(known) == len(items) else None
    if isinstance(node, ast.Dict) and len(node.keys) <= _MOST_ITEMS:
        keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
        given = [_value(each) for each in node.values]
        if None in keys or None in given:
            return None
        return Mapping_({key: each for key, each in zip(keys, given, strict=True) if each is not None})
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        positive = _value(node.operand)
        number = positive.value if isinstance(positive, Const) else None
        return Const(-number) if isinstance(number, (int, float)) else None
    if ast.unparse(node) in ("float('inf')", "math.inf", "float('infinity')"):
        return Const(float("inf"))
    plain = isinstance(node, ast.Constant) and type(node.value) in (int, float, str)
    return Const(node.value) if plain and isinstance(node, ast.Constant) else None
