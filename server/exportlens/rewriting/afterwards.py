"""Afterwards: whose memory is written in place once a statement has run, in its function and in those that call it.

What torch.cond and while_loop give has memory of its own: where the code before gave a tensor that someone else holds
too, a later write would no longer reach both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from exportlens.rewriting.effects import visit, writes_of
from exportlens.rewriting.kind import LOCAL, Kind
from exportlens.rewriting.kinds import Kinds
from exportlens.rewriting.names import arguments, bound, dotted
from exportlens.rewriting.text import Source
from exportlens.source.parsing import parse_python


@dataclass(frozen=True, slots=True)
class Later:
    """Memory (roots, and names of which none are known) that is written in place, and that is returned, once a
    statement has run."""

    written: frozenset[str]
    returned: frozenset[str]


def afterwards(
    source: Source, last: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef, kinds: Kinds
) -> Later:
    """What happens to memory once `last` has run, `kinds` being those behind it; loops around it are followed for
    another round, and the callers in the file for what they write of what they are given."""
    now = kinds.copy()
    watch = _Watch()
    statement: ast.stmt = last
    while True:
        block, index = source.block_of(statement)
        visit(block[index + 1 :], now, watch.see)
        owner = source.parents[statement]
        while not isinstance(owner, ast.stmt):
            owner = source.parents[owner]
        if owner is function:
            break
        if isinstance(owner, (ast.For, ast.While)):
            visit([owner], now, watch.see)
        statement = owner
    outside = {each for each in watch.returned if not each.startswith(LOCAL)}
    if outside and callers_write(source, function, kinds):
        watch.written |= outside
    return Later(frozenset(watch.written), frozenset(watch.returned))


class _Watch:
    """Notes what statements write and return."""

    def __init__(self) -> None:
        self.written: set[str] = set()
        self.returned: set[str] = set()

    def see(self, node: ast.stmt, kinds: Kinds) -> None:
        for write in writes_of(node, kinds):
            _see_memory(write.base, kinds, self.written)
        if isinstance(node, ast.AugAssign) and kinds.of(loaded(node.target)).what == "unknown":
            _see_memory(node.target, kinds, self.written)
        if isinstance(node, ast.Return) and node.value is not None:
            _see_memory(node.value, kinds, self.returned)


def _see_memory(node: ast.expr, kinds: Kinds, found: set[str]) -> None:
    base: ast.expr = node
    roots = kinds.of(loaded(node)).roots
    while roots is None and isinstance(base, (ast.Subscript, ast.Attribute)):
        base = base.value
        roots = kinds.of(loaded(base)).roots
    path = dotted(node)
    if roots is not None:
        found |= roots
    elif path is not None:
        found.add(path)


_GIVEN = "result"
_MOST_CALLERS = 3


def callers_write(
    source: Source,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    kinds: Kinds,
    depth: int = 0,
) -> bool:
    """Whether a function of the file, or of another one that is known, writes in place what a call of `function` gave it."""
    called = _called_as(source, function, kinds)
    if not called or depth > _MOST_CALLERS:
        return False
    for statement, modules in _mentioning(source, kinds, called):
        for caller in ast.walk(statement):
            if not isinstance(caller, (ast.FunctionDef, ast.AsyncFunctionDef)) or caller is function:
                continue
            if not any(
                isinstance(each, ast.Call) and _last_name(each.func) in called for each in ast.walk(caller)
            ):
                continue
            inside = Kinds({}, modules)
            inside.results = {name: Kind("tensor", roots=frozenset({_GIVEN})) for name in called}
            for each in arguments(caller.args):
                inside.names[each.arg] = Kind("unknown", roots=frozenset({f"{LOCAL}{each.arg}"}))
            watch = _Watch()
            visit(caller.body, inside, watch.see)
            if _GIVEN in watch.written:
                return True
            if _GIVEN in watch.returned and callers_write(source, caller, kinds, depth + 1):
                return True
    return False


def _last_name(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _mentioning(
    source: Source, kinds: Kinds, names: set[str]
) -> Iterator[tuple[ast.stmt, Mapping[str, str]]]:
    """The statements of the file, and those of other files in which one of `names` occurs, with what is imported there."""
    for statement in [*source.tree.body, *kinds.around]:
        yield statement, kinds.modules
    for name in sorted(names):
        yield from kinds.elsewhere(name)


def _called_as(source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef, kinds: Kinds) -> set[str]:
    """The last names under which `function` is called: for `forward` the attributes that hold such a module."""
    if function.name not in ("forward", "__call__"):
        mentioning = [each for each, _ in _mentioning(source, kinds, {function.name})]
        return {function.name} | _other_names(function.name, mentioning)
    own = [*source.tree.body, *kinds.around]
    owner = next(
        (
            each
            for statement in own
            for each in ast.walk(statement)
            if isinstance(each, ast.ClassDef) and function in each.body
        ),
        None,
    )
    found: set[str] = set()
    if owner is None:
        return found
    everywhere = [statement for statement, _ in _mentioning(source, kinds, {owner.name})]
    built = {owner.name} | _other_names(owner.name, everywhere)
    nodes = [node for statement in everywhere for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Call) and _last_name(each.func) in built for each in ast.walk(node.value)
        ):
            found |= {getattr(each, "attr", getattr(each, "id", "")) for each in node.targets}
    for node in nodes:
        if isinstance(node, (ast.For, ast.comprehension)) and any(
            isinstance(each, ast.Attribute) and each.attr in found for each in ast.walk(node.iter)
        ):
            found |= set(bound(node.target))
    return found - {""}


def _other_names(name: str, statements: Iterable[ast.stmt]) -> set[str]:
    """The names that imports give to `name`."""
    return {
        alias.asname
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == name and alias.asname
    }


def loaded(node: ast.expr) -> ast.expr:
    return parse_python(ast.unparse(node), mode="eval").body
