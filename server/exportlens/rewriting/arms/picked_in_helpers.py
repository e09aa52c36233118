"""Numbers that are read out of views in functions which an arm of torch.cond calls (see `picked_elements`).

def last(mask):                          def last(mask):
    found = mask.nonzero()[:, 0]   ->        found = mask.nonzero()[:, 0]
    return found[-1].item()                  return found[-1].clone().item()
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from exportlens.finding import Edit
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import own_expressions, visit
from exportlens.rewriting.memory.helper_writes import called_function, given_arguments, methods_of
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

# A function, and a view in it out of which it reads a number.
Read = tuple[ast.FunctionDef, ast.expr]
Picks = Callable[[ast.AST, Kinds], ast.expr | None]
_DEEPEST = 4


def copied_in_helpers(source: Source, call: ast.Call, kinds: Kinds, picks: Picks) -> list[Replacement]:
    """The copies of views out of which functions that `call` runs read numbers, in the methods of `source`; those in other parts of
    the file are noted for the fix. `picks` gives the view out of which a node reads a number. Raises Refused."""
    swaps = []
    for function, view in _read(call, kinds, picks, set()):
        if kinds.views is not None and any(holds(chunk, function) for chunk in kinds.around):
            if (function, view) not in kinds.views:
                kinds.views.append((function, view))
            continue
        own = [each for each in _own(source, function, view) if isinstance(each, ast.expr)]
        if not own:
            raise Refused(
                f"`{function.name}` reads a number of `{ast.unparse(view)}`, a view, which torch.cond takes of a copy only: "
                "write `.clone().item()`"
            )
        swaps += [Replacement(source.end(each), source.end(each), ".clone()") for each in own]
    return swaps


def _read(call: ast.Call, kinds: Kinds, picks: Picks, seen: set[ast.FunctionDef]) -> Iterator[Read]:
    function, instance = called_function(call, kinds)
    if function is None or function in seen or len(seen) >= _DEEPEST or not function.name:
        return
    seen.add(function)
    if not any(isinstance(each, ast.Call) for each in walk(function)):
        return
    inside = kinds.inside_of(function)
    given = given_arguments(call, function, instance is not None)
    for each in arguments(function.args):
        if each.arg == "self":
            inside.names["self"] = kinds.names.get("self", Kind("unknown", roots=None))
            continue
        known = kinds.of(given[each.arg]) if each.arg in given else Kind("unknown")
        inside.names[each.arg] = replace(known, roots=frozenset({f"given:{each.arg}"}))
    if instance is not None:
        inside.functions = methods_of(instance, function, inside)
        inside.names["self"] = Kind("object", roots=None, value=instance)
    found: list[Read] = []

    def see(statement: ast.stmt, now: Kinds) -> None:
        for each in own_expressions(statement):
            view = picks(each, now)
            if view is not None:
                found.append((function, view))
            if isinstance(each, ast.Call):
                found.extend(_read(each, now, picks, seen))

    visit(function.body, inside, see)
    yield from found


def holds(chunk: Chunk, function: ast.FunctionDef) -> bool:
    """Whether `function` is one of `chunk`, or a method of a class there."""
    return any(
        function is each or (isinstance(each, ast.ClassDef) and function in each.body) for each in chunk.body
    )


def _own(source: Source, function: ast.FunctionDef, view: ast.expr) -> Iterator[ast.AST]:
    """`view`, a node of `function`, in the functions of `source` that say the same."""
    same = ast.dump(function)
    for each in walk(source.tree):
        if isinstance(each, ast.FunctionDef) and each.name == function.name and ast.dump(each) == same:
            yield from (here for here, there in zip(walk(each), walk(function), strict=True) if there is view)


def copied_views(draft: Draft, views: Iterable[tuple[ast.FunctionDef, ast.expr]]) -> list[Edit]:
    """The edits that copy `views`, each with the function around it, in other parts of the file. Raises Refused."""
    made: list[Edit] = []
    for function, view in views:
        chunk = next(each for each in draft.others() if holds(each, function))
        helper = Draft.of_chunk(chunk, draft.context)
        node = helper.source.find(view)
        assert isinstance(node, ast.expr)
        swap = helper.source.swap(node, f"{helper.source.of(node)}.clone()")
        made += helper.replace("Copy the view", [swap], uses_torch=False).edits
    return made
