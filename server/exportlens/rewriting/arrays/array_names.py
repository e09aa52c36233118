"""What NumPy makes before the model runs: a name that the file binds once, and an attribute that the constructor sets once.

The expression that makes it is read as those of `forward` are, as if torch made the arrays, which tells its dtype, how many
dimensions it has and whether its values go up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from exportlens.rewriting.arrays.array_types import OTHER, Typed
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, bound, defaults_of, dotted
from exportlens.rewriting.code.text import Function
from exportlens.source.walking import walk

if TYPE_CHECKING:
    from exportlens.rewriting.arrays.array_reading import Reading

_NUMBERS = ("float", "int", "len", "abs", "round")


class _All(set[Any]):
    """Every call that makes an array."""

    def __contains__(self, item: object) -> bool:
        return True


def made_before(reading: Reading, node: ast.expr) -> Typed | None:
    """What `node` is, a name of the file or an attribute of the model that NumPy makes once; None for anything else."""
    value = _value_of(reading, node)
    if value is None or value in reading.before:
        return None
    function = reading.source.enclosing_function(value)
    reading.before.add(value)
    outer = reading.names, reading.wanted
    try:
        reading.names, reading.wanted = {}, _All()
        kind = _typed(reading, value, function, frozenset())
    except Refused:
        return None
    finally:
        reading.names, reading.wanted = outer
        reading.before.discard(value)
    if kind.is_array:
        return Typed("held", kind.dtype, kind.rank, ascends=kind.ascends, least=kind.least)
    return kind if kind.what == "constant" else None


def _typed(reading: Reading, value: ast.expr, function: Function | None, seen: frozenset[str]) -> Typed:
    """What `value` is, an expression of the constructor or of the file. Raises Refused where it is not of NumPy and numbers alone."""
    for each in ast.walk(value):
        if isinstance(each, ast.Call) and not _is_followed(reading, each):
            raise Refused(f"what `{reading.source.of(each)}` gives is not known")
        if isinstance(each, ast.Name) and function is not None and each.id not in seen:
            kind = _of_local(reading, each.id, function, seen)
            if kind is not None:
                reading.names[each.id] = kind
    return reading.piece(value).type


def _is_followed(reading: Reading, call: ast.Call) -> bool:
    name = reading.draft.qualified(call.func)
    if name.startswith(("numpy.", "math.")):
        return not name.startswith("numpy.random.")
    if isinstance(call.func, ast.Name):
        return call.func.id in _NUMBERS
    # A method of what NumPy makes.
    return isinstance(call.func, ast.Attribute) and (dotted(call.func.value) or "self") != "self"


def _of_local(reading: Reading, name: str, function: Function, seen: frozenset[str]) -> Typed | None:
    """What a local name of the constructor is; None where it is none."""
    given = next((each for each in arguments(function.args) if each.arg == name), None)
    if given is not None:
        kind = {"int": "int", "float": "float"}.get(ast.unparse(given.annotation) if given.annotation else "")
        default = defaults_of(function.args).get(name)
        if kind is None and isinstance(default, ast.Constant) and type(default.value) in (int, float):
            kind = type(default.value).__name__
        return OTHER if kind is None or name in bound(function.body) else Typed("number", kind)
    if name not in bound(function.body):
        return None
    stores = [
        each
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    statement = reading.source.parents[stores[0]] if len(stores) == 1 else None
    if not isinstance(statement, ast.Assign) or statement.targets != stores:
        return OTHER
    if any(True for _ in _writes(function, name)):
        return OTHER
    return _typed(reading, statement.value, function, seen | {name})


def _value_of(reading: Reading, node: ast.expr) -> ast.expr | None:
    """The one expression that is bound to `node`."""
    tree = reading.source.tree
    if isinstance(node, ast.Name):
        function = reading.source.enclosing_function(node)
        if function is not None and node.id in {*_arguments(function), *bound(function.body)}:
            return None
        stores = [each for each in tree.body if node.id in bound(each)]
        store = stores[0] if len(stores) == 1 else None
        anew = any(isinstance(each, ast.Global) and node.id in each.names for each in ast.walk(tree))
        if not isinstance(store, ast.Assign) or [dotted(each) for each in store.targets] != [node.id]:
            return None
        return None if anew or any(True for _ in _writes(tree, node.id)) else store.value
    if not isinstance(node, ast.Attribute) or dotted(node.value) != "self":
        return None
    cls = next((each for each in reading.source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    targets = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.Attribute) and each.attr == node.attr and not isinstance(each.ctx, ast.Load)
    ]
    statement = reading.source.parents[targets[0]] if len(targets) == 1 else None
    if not isinstance(statement, ast.Assign) or statement.targets != targets:
        return None
    function = reading.source.enclosing_function(statement)
    inside = cls is not None and any(each is cls for each in reading.source.ancestors(statement))
    if not inside or function is None or function.name != "__init__":
        return None
    return None if any(True for _ in _writes(tree, node.attr)) else statement.value


def _arguments(function: Function) -> set[str]:
    return {each.arg for each in arguments(function.args)}


def _writes(scope: ast.AST, name: str) -> Iterator[ast.Subscript]:
    """Where an item of `name` is set, or of the attribute of that name."""
    for each in ast.walk(scope):
        if isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            owner = each.value
            while isinstance(owner, ast.Subscript):
                owner = owner.value
            if getattr(owner, "id", getattr(owner, "attr", None)) == name:
                yield each
