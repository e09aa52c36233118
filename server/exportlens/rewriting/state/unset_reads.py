"""Reads of state that the first call does not find yet, in what torch.cond or while_loop would trace in each call.

self.prev = None
...
if self.step == 0:            The `if` never reads the None. torch.cond traces both sides in every call, the first one included.
    y = x
else:
    y = x - self.prev
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator

from exportlens.rewriting.code.draft import Refused, RefusedState
from exportlens.rewriting.code.liveness import exits, leaves
from exportlens.rewriting.code.names import is_none
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.state.kept_scopes import BLOCKS, File, Kept, Read, Scope
from exportlens.rewriting.state.unset_state import stored
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

_WHEN = "both ways are traced in every call, the first one included"


def refuse_unset(source: Source, node: ast.AST, around: Iterable[Chunk], later: Container[str] = ()) -> None:
    """Raise Refused where a way through `node`, which does not run in each call, reads what an earlier call must have set, or where
    one way alone sets it; not of the attributes `later`, which may be registered when more has been rewritten."""
    function = source.enclosing_function(node)
    owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    if function is None or owner is None:
        return
    file = File([*source.tree.body, *(each for chunk in around for each in chunk.body)])
    scope = Scope(file, function, file.state(owner))
    for each in _ways(source, node, function):
        for read in scope.reads(each):
            raise Refused(_reason(read))
    if isinstance(node, ast.If):
        _refuse_set_in_one(source, node, function, scope, later)


def _ways(source: Source, node: ast.AST, function: Function) -> Iterator[ast.AST]:
    """What of `node`, or behind it, does not run in each call."""
    if isinstance(node, ast.If):
        yield from [*node.body, *node.orelse]
        inner: ast.AST = node
        if leaves(node.body) or (node.orelse and leaves(node.orelse)):
            for outer in source.ancestors(node):
                for name in BLOCKS:
                    block = getattr(outer, name, None)
                    if isinstance(block, list) and inner in block:
                        yield from block[block.index(inner) + 1 :]
                if outer is function:
                    break
                inner = outer
    elif isinstance(node, (ast.While, ast.For)):
        yield from node.body
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.BoolOp):
        yield from node.values[1:]


def _refuse_set_in_one(
    source: Source, node: ast.If, function: Function, scope: Scope, later: Container[str]
) -> None:
    """Raise Refused where one way sets what the call may have found unset: the other would give the None on."""
    arms = [node.body, node.orelse]
    if any(arm and isinstance(arm[-1], ast.Raise) for arm in arms):
        return
    behind = [each for each in _ways(source, node, function) if each not in node.body + node.orelse]
    loop = next((each for each in source.ancestors(node) if isinstance(each, (ast.For, ast.While))), None)
    if loop is not None and not any("returns" in exits(arm) for arm in arms if arm):
        # What stands behind a loop runs after its `break` as well.
        inside = set(ast.walk(loop))
        behind = [each for each in behind if each in inside]
    ways = [arm if leaves(arm) else [*arm, *behind] for arm in arms]
    for way in ways:
        for each in (one for statement in way for one in walk(statement)):
            for target, value in stored(each):
                kept = scope.means(target) if isinstance(target, ast.Attribute) else None
                if not isinstance(kept, Kept) or kept.how not in ("none", "missing") or is_none(value):
                    continue
                if kept.attr in later:
                    continue
                if all(scope.settles(one, kept) for one in ways) or scope.has_set(node, kept):
                    continue
                text = ast.unparse(target)
                found = "None" if kept.how == "none" else "not there"
                reason = f"`{text}` is {found} until a call has set it, one way does not set it, and {_WHEN}"
                raise RefusedState(reason, text)


def _reason(read: Read) -> str:
    text, kept = ast.unparse(read.node), read.kept
    if kept.how == "none":
        return f"`{text}` is None until a call has set it, and {_WHEN}"
    if kept.how == "missing":
        return f"`{text}` is not there until a call has set it, and {_WHEN}"
    return f"`{text}` is None or not there until earlier calls have filled `{kept.attr}`, and {_WHEN}"
