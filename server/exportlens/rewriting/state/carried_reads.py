"""State that the first call does not find, and that later ones read where it was not read: `y = x if self.step == 0 else x - self.prev`.

The program is that of one call, which goes the way of the first one for ever.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping

from exportlens.rewriting.code.liveness import leaves
from exportlens.rewriting.code.names import dotted, is_none
from exportlens.rewriting.state.kept_scopes import BLOCKS, File, Kept, Read, Scope
from exportlens.rewriting.state.unset_state import ADDING, KeptState, stored
from exportlens.source.document import Document
from exportlens.source.walking import walk


@functools.lru_cache(maxsize=64)
def carried_by_calls(document: Document, name: str) -> Mapping[str, frozenset[str]]:
    """The attributes of the Module `name` of the file that a call leaves for later ones, as what calls change decides: each with
    the attributes that decide."""
    file = File([each for placed in document.placed for each in placed.chunk.body], carried=True)
    cls = file.classes.get(name)
    state = None if cls is None else file.state(cls)
    forward = None if state is None else state.methods.get("forward")
    if state is None or forward is None or not state.is_module:
        return {}
    scope = Scope(file, forward, state)
    found: dict[str, frozenset[str]] = {}
    for read in (each for statement in forward.body for each in scope.reads(statement)):
        attr = read.kept.attr
        deciding = _deciding(read) if read.kept.owner is state else None
        if deciding is not None and not any(_ends(each, attr) for each in state.traced):
            found[attr] = found.get(attr, frozenset()) | deciding
    return found


def _deciding(read: Read) -> frozenset[str] | None:
    """The attributes by which the read is left to later calls; None where it is not, or where something else decides, too."""
    if _is_moved_on(read):
        return None
    found: set[str] = set()
    for scope, test, holds in _tests(read.scope, read.node):
        changes = _changing(test, scope, read.kept)
        found |= changes
        if not changes and holds and not _is_around_writes(test, read):
            return None
    return frozenset(found) if found or read.kept.how == "items" else None


def _is_around_writes(test: ast.expr, read: Read) -> bool:
    """Whether all that sets the state stands under the same option: who reads it has set it."""
    same, file, path = ast.dump(test), read.scope.file, f"self.{read.kept.attr}"
    writes = [
        (each, method)
        for method in read.kept.owner.traced
        for each in walk(method)
        if _writes(each, path) and not isinstance(each, ast.Call)
    ]
    return all(_stands_under(each, same, file.above(method)) for each, method in writes)


def _stands_under(node: ast.AST, test: str, above: dict[ast.AST, ast.AST]) -> bool:
    while node in above:
        outer = above[node]
        if isinstance(outer, ast.If) and node in outer.body and ast.dump(outer.test) == test:
            return True
        node = outer
    return False


def _is_moved_on(read: Read) -> bool:
    """Whether an item is only moved to another place of the same list."""
    statement = read.node
    while not isinstance(statement, ast.stmt):
        statement = read.scope.above[statement]
    targets = [target for target, _ in stored(statement)]
    return bool(targets) and all(
        isinstance(each, ast.Subscript) and read.scope.means(each.value) == read.kept for each in targets
    )


def _tests(scope: Scope, node: ast.AST) -> Iterator[tuple[Scope, ast.expr, bool]]:
    """The tests that decide whether a call comes to `node`, each with whether `node` stands in one of its ways."""
    inner = node
    while inner is not scope.function:
        outer = scope.above[inner]
        if isinstance(outer, (ast.If, ast.While, ast.IfExp)) and inner is not outer.test:
            yield scope, outer.test, True
        for name in BLOCKS:
            block = getattr(outer, name, None)
            if isinstance(block, list) and inner in block:
                for each in block[: block.index(inner)]:
                    if isinstance(each, ast.If) and (
                        leaves(each.body) or leaves(each.orelse or [ast.Pass()])
                    ):
                        yield scope, each.test, False
        inner = outer
    if scope.caller is not None:
        yield from _tests(*scope.caller)


def _changing(test: ast.expr, scope: Scope, kept: Kept) -> set[str]:
    """The attributes of the model that `test` asks for and calls change, also under a name: not whether a table is there already,
    but how long a list has become."""
    names = {each.id for each in walk(test) if isinstance(each, ast.Name)}
    parts: list[ast.AST] = [test]
    parts += [
        value
        for each in walk(scope.function)
        for target, value in stored(each)
        if value is not None and isinstance(target, ast.Name) and target.id in names
    ]
    asked = {_asked(each, scope, kept) for part in parts for each in walk(part)}
    return {each for each in asked if each is not None}


def _asked(node: ast.AST, scope: Scope, kept: Kept) -> str | None:
    if scope.means(node) == kept:
        above = scope.above[node]
        if isinstance(above, ast.Call) and dotted(above.func) == "len":
            return kept.attr
        # What is there from the second call on: the first one has left it.
        return kept.attr if kept.how in ("none", "missing") and _asks_for_none(above) else None
    if not isinstance(node, ast.Attribute) or dotted(node.value) != "self" or scope.owner is None:
        return None
    return node.attr if _is_changed(scope.owner, node.attr) else None


def _asks_for_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and is_none(node.comparators[0])


def _is_changed(state: KeptState, attr: str) -> bool:
    return any(_writes(each, f"self.{attr}") for method in state.traced for each in walk(method))


def _writes(node: ast.AST, path: str) -> bool:
    """Whether `node` sets the attribute or an item of it, adds to it, or writes the tensor that it holds."""
    targets = [node.target] if isinstance(node, ast.AugAssign) else [target for target, _ in stored(node)]
    targets = [each.value if isinstance(each, ast.Subscript) else each for each in targets]
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and dotted(func.value) == path:
        return func.attr in ADDING or (func.attr.endswith("_") and not func.attr.startswith("_"))
    return path in map(dotted, targets)


def _ends(method: ast.AST, attr: str) -> bool:
    """Whether `method` takes the state away again, or makes the list anew: the next call may not find it."""
    path = f"self.{attr}"
    for each in walk(method):
        for target, value in stored(each):
            sliced = isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)
            whole = target.value if sliced and isinstance(target, ast.Subscript) else target
            anew = sliced or isinstance(value, (ast.Constant, ast.List, ast.Dict, ast.ListComp))
            if dotted(whole) == path and anew and not _mentions(value, path):
                return True
        func = each.func if isinstance(each, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr == "clear" and dotted(func.value) == path:
            return True
        if isinstance(each, ast.Delete) and any(_is_of(one, path) for one in each.targets):
            return True
    return False


def _mentions(value: ast.expr | None, path: str) -> bool:
    return value is None or any(dotted(each) == path for each in walk(value))


def _is_of(target: ast.expr, path: str) -> bool:
    return dotted(target) == path or (isinstance(target, ast.Subscript) and dotted(target.value) == path)
