"""Attributes that an arm sets by their names are set behind the branch, to what the arms chose:

if now > seen:                                     peak = getattr(self, f"{name}_peak")
    setattr(self, f"{name}_peak", now)     ->      if now > seen:
                                                       peak = now
                                                   setattr(self, f"{name}_peak", peak)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, every_name, fresh, reads
from exportlens.rewriting.code.text import Function, Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import repeatable
from exportlens.rewriting.state.plain_writes import NamedWrite, named_read, named_write
from exportlens.source.walking import walk


def set_behind(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """The text in which such attributes are set behind `node`, and `node` of it; None where there are none. Raises Refused where
    an attribute may be read or set in another way, or is not known to be there."""
    function = source.enclosing_function(node)
    found = list(_writes(node))
    if not found or function is None:
        return None
    if source.text.startswith("elif", source.start(node)) or not source.begins_line(node):
        return None
    texts = {(dotted(each.owner), ast.unparse(each.name)) for _, each in found}
    shown = source.of(found[0][1].name)
    if len(texts) != 1 or exits([node]) != {"falls"}:
        raise Refused(f"attributes of several names are set in the branch, `{shown}` one of them")
    [(owner, name)] = texts
    _refuse_uses(source, node, found, kinds)
    begun = _is_read_before(source, node, function, owner, name)
    if not begun and not _sets_always(node, found):
        raise Refused(f"whether the attribute `{shown}` is there before the branch is not known")
    local = fresh(_wish(found[0][1].name), every_name(source.tree))
    indent, nl = source.indent_of(node), source.newline
    start, end = source.start(node), source.span([node])[1]
    first = found[0][1]
    owner_text, name_text = source.of(first.owner), source.of(first.name)
    head = f"{local} = getattr({owner_text}, {name_text}){nl}{indent}" if begun else ""
    swaps = [Replacement(start, start, head)] if head else []
    for statement, each in found:
        text = source.of(each.value)
        swaps.append(source.swap(statement, f"{local} = {f'({text})' if nl in text else text}"))
    swaps.append(Replacement(end, end, f"{nl}{indent}setattr({owner_text}, {name_text}, {local})"))
    if begun:
        kinds.names[local] = kinds.of(ast.parse(f"getattr({owner_text}, {name_text})", mode="eval").body)
        held = _held_as(source, node, function, owner, name)
        if held is not None and held in kinds.names:
            kinds.names[local] = kinds.names[held]
    return read_again(replaced(source.text, swaps), start + len(head))


def _writes(node: ast.If) -> Iterator[tuple[ast.stmt, NamedWrite]]:
    """The statements in the arms that set an attribute by a name that is put together."""
    for arm in (node.body, node.orelse):
        for statement in arm:
            for each in walk(statement):
                found = named_write(each)
                if found is None or not isinstance(each, ast.stmt) or found.attr is not None:
                    continue
                if found.how == "setattr" and dotted(found.owner) is not None:
                    yield each, found


def _refuse_uses(
    source: Source, node: ast.If, found: list[tuple[ast.stmt, NamedWrite]], kinds: Kinds
) -> None:
    """Raise Refused where the name may be another one behind the branch, or an arm may read what it has set."""
    first = found[0][1]
    shown = source.of(first.name)
    anew = set(bound([*node.body, *node.orelse]))
    if not repeatable(first.name, kinds) or anew & (reads(first.name) | reads(first.owner)):
        raise Refused(f"`{shown}` may be another name behind the branch")
    written = {id(statement) for statement, _ in found}
    for arm in (node.body, node.orelse):
        for each in (one for statement in arm for one in walk(statement)):
            if isinstance(each, (ast.For, ast.While)) and any(id(one) in written for one in walk(each)):
                raise Refused(f"the attribute `{shown}` is set in a loop of the branch")
            if (read := named_read(each)) is not None and dotted(read[0]) == dotted(first.owner):
                raise Refused(f"an attribute is read by its name beside `{shown}`, which the branch sets")
            called = dotted(each.func) if isinstance(each, ast.Call) else None
            if called is not None and called in kinds.functions and "." in called:
                raise Refused(f"`{called}` may read the attribute `{shown}`, which the branch sets")


def _earlier(source: Source, node: ast.If, function: Function) -> Iterator[ast.stmt]:
    """The statements that certainly run before `node`, in the blocks around it."""
    inner: ast.AST = node
    while inner is not function:
        if isinstance(inner, ast.stmt):
            block, index = source.block_of(inner)
            yield from block[:index]
        inner = source.parents[inner]


def _is_read_before(source: Source, node: ast.If, function: Function, owner: str | None, name: str) -> bool:
    earlier = sorted(_earlier(source, node, function), key=source.start)
    for index, statement in enumerate(earlier):
        if set(bound(earlier[index:])) & reads(ast.parse(name, mode="eval").body):
            continue
        if isinstance(statement, (ast.Assign, ast.Expr, ast.AugAssign, ast.AnnAssign)):
            if any(_is_same(each, owner, name) for each in walk(statement)):
                return True
            written = named_write(statement)
            if written is not None and (dotted(written.owner), ast.unparse(written.name)) == (owner, name):
                return True
    return any(_is_same(each, owner, name) for each in walk(node.test))


def _is_same(node: ast.AST, owner: str | None, name: str) -> bool:
    read = named_read(node)
    return (
        read is not None
        and len(getattr(node, "args", "12")) == 2
        and (dotted(read[0]), ast.unparse(read[1])) == (owner, name)
    )


def _held_as(source: Source, node: ast.If, function: Function, owner: str | None, name: str) -> str | None:
    """The local name that is the attribute, by `seen = getattr(self, name)`."""
    for statement in _earlier(source, node, function):
        if isinstance(statement, ast.Assign) and _is_same(statement.value, owner, name):
            targets = statement.targets
            if len(targets) == 1 and isinstance(targets[0], ast.Name):
                return targets[0].id
    return None


def _sets_always(node: ast.If, found: list[tuple[ast.stmt, NamedWrite]]) -> bool:
    """Whether each way through the branch sets the attribute."""
    return all(any(statement in arm for statement, _ in found) for arm in (node.body, node.orelse))


def _wish(name: ast.expr) -> str:
    """A name for the value of the attribute `name`."""
    parts = [
        each.value for each in walk(name) if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    wish = parts[-1].strip("_") if parts else ""
    return wish if wish.isidentifier() else "held"
