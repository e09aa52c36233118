"""Memory that several names share: torch.cond and while_loop take no two tensors of the same memory.

Measured on torch 2.13: two names for the very same tensor are fine, a tensor and a view of it (or two
views) are not, be they arguments or closures ("Input-to-input aliasing").
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.callers import given_together
from exportlens.rewriting.draft import Refused
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.names import arguments, dotted
from exportlens.rewriting.text import Function, Source
from exportlens.source.parsing import parse_python


def to_separate(
    statements: Sequence[ast.stmt],
    also: set[str],
    kinds: Kinds,
    written: set[str],
    entering: frozenset[str] | None = None,
    *,
    source: Source,
    function: Function | None,
) -> list[str]:
    """The names to clone beforehand, so that no two tensors that `statements` of `function` read (and `also`) share memory.

    `entering` are the names whose outside value may be read (None: all); `written` are the names that are
    written in place, in the statements or later. Raises Refused where one of those shares.
    """
    seen: list[tuple[str, object, frozenset[str]]] = []
    clones: list[str] = []
    parameters = set() if function is None else {each.arg for each in arguments(function.args)} - {"self"}
    given: set[frozenset[str]] | None = None
    for name in dict.fromkeys([*_read(statements, kinds), *sorted(also)]):
        if entering is not None and name.isidentifier() and name not in entering:
            continue
        kind = (
            kinds.names.get(name) if name.isidentifier() else kinds.of(parse_python(name, mode="eval").body)
        )
        if (
            kind is None
            or kind.what not in ("tensor", "unknown")
            or not kind.roots
            or any(name == each for each, _, _ in seen)
        ):
            continue
        roots = kind.roots
        own = roots & parameters
        if function is not None and own and any((each & parameters) - own for _, _, each in seen):
            # What two parameters share is known to those that call the function.
            if given is None:
                given = given_together(source, function, kinds)
            roots = roots.union(*(pair for pair in given if pair & own))
        partners = [(each, held) for each, other, held in seen if held & roots and other is not kind]
        if partners:
            if kind.what == "unknown":
                raise Refused(
                    f"`{name}` may share memory with `{partners[0][0]}`, and is not known to be a tensor"
                )
            if written & {name, *(each for each, _ in partners), *roots}:
                raise Refused(
                    f"`{name}` may share memory with `{partners[0][0]}`, and one of them is written"
                )
            cloned = name if name.isidentifier() else partners[0][0]
            if _may_be_none(cloned, function):
                cloned = next(
                    (each for each in (name, partners[0][0]) if not _may_be_none(each, function)), ""
                )
                if not cloned.isidentifier():
                    raise Refused(f"`{name}` may share memory with `{partners[0][0]}`, or be None")
            clones.append(cloned)
            continue
        seen.append((name, kind, kind.roots))
    return clones


def placed_by_data(
    statements: Sequence[ast.stmt], kinds: Kinds, written: set[str], function: Function
) -> list[str]:
    """The names of views that `statements` read, and of which data tells where they begin: non-strict tracing takes none of them
    into torch.cond (measured on torch 2.13). Of `written` memory there is no copy."""
    found = []
    for name in _read(statements, kinds):
        kind = kinds.names.get(name)
        if kind is None or kind.what != "tensor" or not kind.roots or written & {name, *kind.roots}:
            continue
        if any(_is_placed_by_data(each, kinds, function) for each in _bound_to(name, function)):
            found.append(name)
    return found


def _bound_to(name: str, function: Function) -> list[ast.expr]:
    return [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and any(dotted(target) == name for target in each.targets)
    ]


def _is_placed_by_data(node: ast.expr, kinds: Kinds, function: Function) -> bool:
    """Whether `node` takes an item at a number from data: `x[n]`, `x.select(0, n)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "select":
        places: list[ast.expr] = list(node.args[1:])
    elif isinstance(node, ast.Subscript):
        places = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    else:
        return False
    return any(
        kinds.of(each).what == "scalar"
        or (isinstance(each, ast.Name) and any(map(_reads_number, _bound_to(each.id, function))))
        for each in places
    )


def _reads_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


def _may_be_none(name: str, function: Function | None) -> bool:
    """Whether `function` starts `name` with None, and may come without another value: there is nothing to clone then."""
    if function is None:
        return False
    stores = [each for each in ast.walk(function) if isinstance(each, ast.Assign)]
    return any(
        isinstance(each.value, ast.Constant)
        and each.value.value is None
        and any(dotted(target) == name for target in each.targets)
        for each in stores
    )


def _read(statements: Sequence[ast.stmt], kinds: Kinds) -> list[str]:
    """The outside names and attribute paths that are read, attributes first: they cannot be bound anew."""
    names: dict[str, None] = {}
    paths: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in kinds.names:
                names[node.id] = None
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names[node.target.id] = None
            elif isinstance(node, ast.Attribute):
                path = dotted(node)
                # `self.t.T` is made of `self.t` where it is read.
                if path is not None and path.startswith("self.") and kinds.of(node.value).what != "tensor":
                    paths[path] = None
    return [*paths, *names]
