"""Attributes that a loop on tensor data sets, where the function began them: the loop works on names, and they are set behind it.

    self.err = float("inf")                err = float("inf")
    while self.err > self.tol:      ->     while err > self.tol:
        self.err = (z - f(z)).norm()           err = (z - f(z)).norm()
                                           self.err = err

A while_loop carries names. Nothing looks at the attributes in between: the loop calls no method of its class. So it is with flags
that a branch on tensor data sets:

    self.still = False                     still = False
    if (x == y).all():              ->     if (x == y).all():
        self.still = True                      still = True
                                           self.still = still
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import dotted, every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.loops.attributes_in_loops import calls_methods
from exportlens.rewriting.loops.leaving import left_loop
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

NAMED = "Set the attributes behind the loop"
BEHIND = "Set the attributes behind the branch"


def set_behind_loop(source: Source, node: ast.AST, around: Sequence[Chunk]) -> str | None:
    """The whole text where the loop that `node` is, or leaves, sets names; None where it sets no attributes, or what looks at
    them may be anywhere."""
    loop = _loop_of(source, node)
    function = None if loop is None else source.enclosing_function(loop)
    if loop is None or function is None or not source.begins_line(loop) or loop.orelse:
        return None
    paths = dict.fromkeys(path for each in walk(loop) if (path := _set(each)) is not None)
    if not paths or exits(loop.body) & {"returns", "raises"}:
        return None
    if calls_methods(source, [loop], loop, around, paths):
        return None
    begun: dict[str, ast.Assign] = {}
    for path in paths:
        begins = _begun(source, loop, path, around)
        if begins is None or _is_seen_elsewhere(source, function, loop, path):
            return None
        begun[path] = begins
    return _named(source, loop, begun)


def set_behind_branch(source: Source, node: ast.If, around: Sequence[Chunk]) -> str | None:
    """As `set_behind_loop`, where the branch `node` sets flags. Those that another block begins are not known from there on to hang
    on data, which would hide what they decide."""
    function = source.enclosing_function(node)
    paths = dict.fromkeys(path for each in walk(node) if (path := _set(each)) is not None)
    if function is None or not paths or not source.begins_line(node) or exits([node]) - {"falls"}:
        return None
    if source.text.startswith("elif", source.start(node)) or source.parents[node] is not function:
        return None
    if calls_methods(source, [node], node, around, paths):
        return None
    begun: dict[str, ast.Assign] = {}
    for path in paths:
        begins = _begun(source, node, path, around)
        if begins is None or _is_seen_elsewhere(source, function, node, path):
            return None
        if not all(_keeps_flag(each, path) for each in [begins, *walk(node)]):
            return None
        begun[path] = begins
    return _named(source, node, begun)


def _keeps_flag(node: ast.AST, path: str) -> bool:
    """Whether `node` sets the attribute to True or False, or does not set it."""
    if not isinstance(node, ast.Assign):
        told = isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)) and dotted(node.target) == path
        return not told
    if all(path not in map(dotted, walk(each)) for each in node.targets):
        return True
    plain = isinstance(node.value, ast.Constant) and [dotted(each) for each in node.targets] == [path]
    return plain and isinstance(node.value, ast.Constant) and type(node.value.value) is bool


def _named(source: Source, loop: ast.stmt, begun: Mapping[str, ast.Assign]) -> str:
    """The whole text where `loop`, and the statements that begin the attributes, set names."""
    taken = every_name(source.tree)
    swaps: list[Replacement] = []
    behind = []
    for path, begins in begun.items():
        name = fresh(path.removeprefix("self.").lstrip("_") or "value", taken)
        taken = {*taken, name}
        uses = [each for each in walk(loop) if isinstance(each, ast.Attribute) and dotted(each) == path]
        swaps += [source.swap(each, name) for each in (begins.targets[0], *uses)]
        behind.append(f"{path} = {name}")
    end = source.span([loop])[1]
    between = source.newline + source.indent_of(loop)
    return replaced(source.text, [*swaps, Replacement(end, end, "".join(between + line for line in behind))])


def _loop_of(source: Source, node: ast.AST) -> ast.While | ast.For | None:
    if isinstance(node, ast.While):
        return node
    return left_loop(source, node) if isinstance(node, ast.stmt) else None


def _set(node: ast.AST) -> str | None:
    """The attribute of `self` that a statement binds, if any."""
    path = dotted(node) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) else None
    return path if path is not None and path.startswith("self.") and path.count(".") == 1 else None


def _begun(source: Source, loop: ast.stmt, path: str, around: Sequence[Chunk]) -> ast.Assign | None:
    """The statement before `loop` in its block that begins the attribute, where nothing may look at it in between."""
    block, index = source.block_of(loop)
    for at in range(index - 1, -1, -1):
        each = block[at]
        if not _mentions([each], path):
            continue
        if (
            isinstance(each, ast.Assign)
            and [dotted(target) for target in each.targets] == [path]
            and not _mentions([each.value], path)
            and not calls_methods(source, block[at + 1 : index], loop, around, [path])
        ):
            return each
        return None
    return None


def _is_seen_elsewhere(source: Source, function: Function, loop: ast.stmt, path: str) -> bool:
    """Whether a function inside of `function` reads the attribute, or the class makes it a property, or it is deleted."""
    owner = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    if owner is None or any(getattr(each, "name", "") == path.removeprefix("self.") for each in owner.body):
        return True
    inner = [
        each
        for each in walk(function)
        if isinstance(each, (ast.FunctionDef, ast.Lambda)) and each is not function
    ]
    return _mentions(inner, path) or any(
        isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Del) and dotted(each) == path
        for each in walk(loop)
    )


def _mentions(nodes: Sequence[ast.AST], path: str) -> bool:
    return any(
        isinstance(each, ast.Attribute) and dotted(each) == path for node in nodes for each in walk(node)
    )
