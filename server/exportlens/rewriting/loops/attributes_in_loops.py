"""Attributes that a loop on tensor data writes in place: the loop works on a copy under a name, which is written back behind it.

    while row < n:                     means = self.means.clone()
        self.means[i] = f(row)   ->    while row < n:
                                           means[i] = f(row)
                                       self.means.copy_(means)

A while_loop carries what has a name. What holds the same memory sees what is written back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from exportlens.rewriting.code.names import arguments, dotted, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import loaded, visit, writes_of
from exportlens.rewriting.memory.moving import written_bases
from exportlens.source.document import Chunk
from exportlens.source.walking import walk


def with_named_attributes(
    source: Source, loop: ast.While | ast.For, kinds: Kinds
) -> tuple[Source, ast.While | ast.For] | None:
    """The text in which `loop` writes names where it wrote attributes of `self`, and that loop, `kinds` becoming those just
    before it; None where it writes none, or where something else in it may look at them."""
    paths = _written(loop, kinds)
    if not paths or not source.begins_line(loop) or loop.orelse:
        return None
    if calls_methods(source, [loop], loop, kinds.around, paths):
        return None
    taken = every_name(source.tree)
    nl, indent = source.newline, source.indent_of(loop)
    swaps: list[Replacement] = []
    before, behind = [], []
    for path in paths:
        uses = [each for each in ast.walk(loop) if isinstance(each, ast.Attribute) and dotted(each) == path]
        if any(not isinstance(each.ctx, ast.Load) for each in uses) or _has_another_name(loop, path, kinds):
            return None
        if not uses or kinds.of(uses[0]).what != "tensor":
            return None
        name = fresh(path.split(".")[-1].lstrip("_") or "value", taken)
        swaps += [source.swap(each, name) for each in uses]
        before.append(f"{name} = {path}.clone()")
        behind.append(f"{path}.copy_({name})")
    start, end = source.start(loop), source.span([loop])[1]
    swaps.append(Replacement(start, start, "".join(line + nl + indent for line in before)))
    swaps.append(Replacement(end, end, "".join(nl + indent + line for line in behind)))
    changed = Source(replaced(source.text, swaps))
    found = [
        each for each in ast.walk(changed.tree) if type(each) is type(loop) and changed.start(each) > start
    ]
    again = min(found, key=changed.start)
    assert isinstance(again, (ast.While, ast.For))
    block, index = changed.block_of(again)
    kinds.run(block[index - len(before) : index])
    return changed, again


def _written(loop: ast.While | ast.For, kinds: Kinds) -> list[str]:
    """The attributes of `self` that the loop's body writes in place."""
    found: dict[str, None] = {}

    def see(node: ast.stmt, now: Kinds) -> None:
        for write in writes_of(node, now):
            roots = now.of(loaded(write.base)).roots or ()
            found.update(
                dict.fromkeys(root for root in roots if root.startswith("self.") and root.count(".") == 1)
            )

    visit(loop.body, kinds.copy(), see)
    return list(found)


def calls_methods(
    source: Source,
    statements: Sequence[ast.stmt],
    inside: ast.stmt,
    around: Iterable[Chunk],
    paths: Iterable[str],
) -> bool:
    """Whether `statements` call methods of the class around `inside`, which may extend others of `around`, or hand `self` to something,
    that may look at the attributes `paths` or set any."""
    owner = next((each for each in source.ancestors(inside) if isinstance(each, ast.ClassDef)), None)
    methods = None if owner is None else _methods_of(owner, [one for chunk in around for one in chunk.body])
    if methods is None:
        return True
    looking = _Looking(methods, {path.removeprefix("self.") for path in paths})
    return any(map(looking.at, statements))


class _Looking:
    """What may look at the attributes `attrs` of `self` besides by their names in the code at hand."""

    def __init__(self, methods: dict[str, list[ast.FunctionDef]], attrs: set[str]) -> None:
        self.methods, self.attrs = methods, attrs
        self._known: dict[str, bool] = {}

    def at(self, node: ast.AST) -> bool:
        """Whether `node` hands on `self`, or calls a method that looks."""
        whole = {
            id(each) for each in walk(node) if isinstance(each, ast.Name) and each.id in ("self", "super")
        }
        for each in walk(node):
            if isinstance(each, ast.Attribute) and id(each.value) in whole:
                whole.discard(id(each.value))
                if each.attr in self.methods and self._looks(each.attr):
                    return True
        return bool(whole)

    def _looks(self, name: str) -> bool:
        """Whether one of the methods of that name sets an attribute of `self`, reads one of `attrs`, or does so by others."""
        if name not in self._known:
            # One that calls itself is looked at once.
            self._known[name] = False
            self._known[name] = any(map(self._looks_in, self.methods[name]))
        return self._known[name]

    def _looks_in(self, method: ast.FunctionDef) -> bool:
        parameters = arguments(method.args)
        if not parameters or parameters[0].arg != "self" or _writes_self(method):
            return True
        seen = (
            each
            for each in walk(method)
            if isinstance(each, ast.Attribute)
            and isinstance(each.value, ast.Name)
            and each.value.id == "self"
        )
        return any(not isinstance(each.ctx, ast.Load) or each.attr in self.attrs for each in seen) or any(
            map(self.at, method.body)
        )


def _writes_self(method: ast.FunctionDef) -> bool:
    """Whether `method` writes in place to what is not its own: `self.seen.add_(1)`, `self.table[0] = 1`."""
    for base in written_bases(method):
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        if isinstance(base, ast.Name) and base.id == "self":
            return True
    return False


def _methods_of(
    owner: ast.ClassDef, statements: Iterable[ast.stmt]
) -> dict[str, list[ast.FunctionDef]] | None:
    """The methods of `owner`, of what it extends, and those by which what extends it replaces them; None where that is not all in
    the file."""
    classes = {each.name: each for each in statements if isinstance(each, ast.ClassDef)}
    found = [owner]
    for node in found:
        for base in (dotted(each) or "" for each in node.bases):
            if base in classes and classes[base] not in found:
                found.append(classes[base])
            elif base not in classes and base.rpartition(".")[2] != "Module":
                return None
    names = {each.name for node in found for each in node.body if isinstance(each, ast.FunctionDef)}
    methods: dict[str, list[ast.FunctionDef]] = {}
    for node in [*found, *(each for each in classes.values() if each not in found)]:
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and each.name in names:
                methods.setdefault(each.name, []).append(each)
    return methods


def _has_another_name(loop: ast.While | ast.For, path: str, kinds: Kinds) -> bool:
    """Whether the loop knows the memory of `path` by another name as well."""
    read = {each.id for each in ast.walk(loop) if isinstance(each, ast.Name)}
    return any(
        name in read and path in (kind.roots or ()) for name, kind in kinds.names.items() if name != path
    )
