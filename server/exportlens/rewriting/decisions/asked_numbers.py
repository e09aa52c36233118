"""Numbers that are read out of tensors of an unknown dtype, and asked for their truth alone: bools of the tensor decide the same."""

from __future__ import annotations

import ast

from exportlens.finding import Fix
from exportlens.inference.places import Truth
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import dotted, walk_own
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source

_PASSING = frozenset({"zip", "reversed", "enumerate", "list", "tuple"})


def read_as_bools(draft: Draft, node: ast.AST, place: Truth) -> Fix | None:
    """`t.bool().unbind()` for `t.tolist()`, and `t.bool()` for `t.item()`, where all numbers of it are tested; None where they are
    used otherwise, something else is tested, or a side of the branch `node` gives something else than tensors."""
    source = draft.source
    arms = [*place.then.values(), *place.other.values()]
    given = [option for value in arms for option in options(value)]
    if not isinstance(node, ast.If) or not given or not all(isinstance(each, Tensor) for each in given):
        return None
    readings = {each: _reading(source, each) for each in _leaves(node.test)}
    found = {each: reading for each, reading in readings.items() if reading is not None}
    if not found:
        return None
    swaps = []
    for reading in dict.fromkeys(found.values()):
        assert isinstance(reading.func, ast.Attribute)
        tensor = reading.func.value
        listed = ".unbind()" if reading.func.attr == "tolist" else ""
        swaps.append(source.swap(reading, f"{primary(source.of(tensor))}.bool(){listed}"))
    return draft.replace("Ask bools of the tensor", swaps, uses_torch=False)


def _leaves(test: ast.expr) -> list[ast.expr]:
    """The names and items whose truth is tested."""
    if isinstance(test, ast.BoolOp):
        return [leaf for each in test.values for leaf in _leaves(each)]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _leaves(test.operand)
    return [test] if isinstance(test, (ast.Name, ast.Subscript)) else []


def _reading(source: Source, leaf: ast.expr) -> ast.Call | None:
    """The `t.tolist()` or `t.item()` that gives a name or an item its number, where all it gives is tested."""
    name = leaf.value if isinstance(leaf, ast.Subscript) else leaf
    function = source.enclosing_function(leaf)
    if not isinstance(name, ast.Name) or function is None:
        return None
    own = [each for each in walk_own(function.body) if isinstance(each, ast.Name) and each.id == name.id]
    stores = [each for each in own if isinstance(each.ctx, ast.Store)]
    every = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name.id]
    if len(stores) != 1 or len(every) != len(own):
        return None
    items = isinstance(leaf, ast.Subscript)
    if not all(_is_asked(source, each, items) for each in own if each is not stores[0]):
        return None
    given = _given(source, stores[0])
    is_list = items or not isinstance(source.parents[stores[0]], ast.Assign)
    how = "tolist" if is_list else "item"
    return given if isinstance(given, ast.Call) and _is_read(given, how) else None


def _is_asked(source: Source, name: ast.Name, items: bool) -> bool:
    """Whether nothing but the truth is asked of a name, or of its items."""
    node: ast.AST = name
    if items:
        node = source.parents[name]
        if isinstance(node, ast.Call) and dotted(node.func) == "len":
            return True
        if not isinstance(node, ast.Subscript) or node.value is not name or isinstance(node.slice, ast.Slice):
            return False
    parent = source.parents[node]
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        node, parent = parent, source.parents[parent]
    return isinstance(parent, (ast.If, ast.IfExp, ast.While, ast.Assert)) and parent.test is node


def _given(source: Source, store: ast.Name) -> ast.expr | None:
    """What a name is given: the value of an assignment, or what a loop goes through."""
    place: list[int] = []
    node: ast.AST = store
    parent = source.parents[node]
    while isinstance(parent, (ast.Tuple, ast.List)):
        place.insert(0, parent.elts.index(node))  # type: ignore[arg-type]
        node, parent = parent, source.parents[parent]
    if isinstance(parent, ast.Assign):
        return parent.value if not place and len(parent.targets) == 1 else None
    if not isinstance(parent, ast.For) or parent.target is not node:
        return None
    given: ast.expr = parent.iter
    while isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id in _PASSING:
        index = 0
        if given.keywords or any(isinstance(each, ast.Starred) for each in given.args):
            return None
        if given.func.id in ("zip", "enumerate"):
            if not place:
                return None
            index = place.pop(0)
            if given.func.id == "enumerate":
                if index != 1:
                    return None
                index = 0
        if index >= len(given.args):
            return None
        given = given.args[index]
    return None if place else given


def _is_read(node: ast.Call, how: str) -> bool:
    return (
        isinstance(node.func, ast.Attribute) and node.func.attr == how and not node.args and not node.keywords
    )
