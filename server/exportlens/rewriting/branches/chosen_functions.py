"""Lists and dicts of functions, of which tensor data chooses one: `self.acts = [F.relu, torch.tanh]` of the constructor's, a
`{0: torch.relu, 1: lambda x: x * x}` of the class's or of the file's."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import arguments, bound, dotted, reads
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.code.written_items import Written, constant, stores_of
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import writes_of
from exportlens.source.walking import walk


@dataclass(frozen=True, slots=True)
class Way:
    """One item: the key that chooses it, and how it is written where it is taken. A `pure` one is a function that writes nothing
    and gives a tensor of its own."""

    key: int | str
    text: str
    pure: bool = False


def function_ways(draft: Draft, node: ast.expr, kinds: Kinds) -> list[Way] | None:
    """The functions that the list or dict `node` has; None where it has others, or where they are called something else in
    other places."""
    made = _made(draft, node)
    if isinstance(made, ast.Dict):
        keys, items = [constant(each) for each in made.keys], made.values
    elif isinstance(made, (ast.List, ast.Tuple)):
        keys, items = list(range(len(made.elts))), made.elts
    else:
        return None
    if not Written(draft, node).has_all(node) or Written(draft, node).grows(node):
        return None
    functions = [draft.source.enclosing_function(node)]
    if made in draft.source.parents:
        functions.append(draft.source.enclosing_function(made))
    local = {name for each in functions for name in _local(each)}
    found: list[Way] = []
    for key, item in zip(keys, items, strict=True):
        name = dotted(item) or ""
        head = name.partition(".")[0]
        if key is None or key in (each.key for each in found):
            return None
        if isinstance(item, ast.Lambda) and _is_pure(item, kinds):
            found.append(Way(key, f"{draft.source.of(node)}[{key!r}]", pure=True))
        elif (name in kinds.functions or head in draft.modules) and (head == "self" or head not in local):
            found.append(Way(key, name))
        else:
            return None
    return found


def _made(draft: Draft, node: ast.expr) -> ast.expr | None:
    """The value of the one assignment to `node`: of the function around it, of the model's, of its class, or of the file."""
    source, path = draft.source, dotted(node)
    if path is None:
        return None
    within = source.enclosing_function(node) if isinstance(node, ast.Name) else source.tree
    stores = stores_of(list(walk(within)), path) if within is not None else []
    if stores:
        statement = source.parents.get(stores[0]) if len(stores) == 1 else None
        return statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    # `Written` says whether it is the only one.
    bodies: Sequence[Sequence[ast.stmt]]
    if isinstance(node, ast.Name):
        bodies = [placed.chunk.body for placed in draft.context.document.placed]
    else:
        bodies = [each.body for each in source.ancestors(node) if isinstance(each, ast.ClassDef)][:1]
    values = [
        each.value
        for body in bodies
        for each in body
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and path.removeprefix("self.") in bound(each)
    ]
    return values[0] if len(values) == 1 else None


def _is_pure(function: ast.Lambda, kinds: Kinds) -> bool:
    """Whether `function`, called with tensors, certainly gives one with memory of its own, and writes to none."""
    given = function.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
        return False
    names = {each.arg for each in arguments(given)}
    inside = kinds.copy()
    for name in names:
        inside.names[name] = Kind("tensor", roots=frozenset({name}))
    free = reads(function.body) - names
    if any(
        name not in kinds.modules or inside.of(ast.Name(name, ast.Load())).what != "object" for name in free
    ):
        # What the file's functions do is not looked at, and a name of the function that chooses is another one here.
        return False
    kind = inside.of(function.body)
    return (
        kind.what == "tensor"
        and kind.fresh
        and not any(True for _ in writes_of(ast.Expr(function.body), inside))
    )


def _local(function: Function | None) -> set[str]:
    if function is None:
        return set()
    return {each.arg for each in arguments(function.args)} | set(bound(function.body))
