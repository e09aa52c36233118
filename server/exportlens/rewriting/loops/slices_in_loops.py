"""Slices of a length that is written, at a count of a while_loop: `x[i:i + 1]` beside other tensors, or joined with them.

Measured on torch 2.13: the slice has a size that is not known, which torch takes for another than one beside a tensor, and the
program, and eager too, where torch compiles the body, fail. `x.narrow(0, i, 1)` has the size that is written.
"""

from __future__ import annotations

import ast
from typing import TypeVar

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.ranges import written_int
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.powers_in_loops import is_count, symbols_in
from exportlens.source.walking import walk

_Loop = TypeVar("_Loop", ast.While, ast.While | ast.For)
_JOINING = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})


def slices_at_counts(source: Source, loop: _Loop, kinds: Kinds) -> tuple[Source, _Loop] | None:
    """The text where slices in the body of `loop`, which becomes a while_loop, have the size that is written, and the loop of it; None
    where it has none. Raises Refused where a slice may begin below zero."""
    swaps: list[Replacement] = []
    symbols = symbols_in(source, loop, kinds)
    inside = kinds.copy()
    inside.run(loop.body)
    for each in walk(loop):
        found = _slice_of(each)
        if found is None or not isinstance(each, ast.Subscript) or not isinstance(each.ctx, ast.Load):
            continue
        dim, begin, length = found
        whole = _scaled(source, each, inside)
        joined = _is_joined(source, whole, kinds)
        beside = _is_beside_tensor(source, whole) and length == 1
        if not (reads(begin) & symbols) or not (joined or beside) or inside.of(each.value).what != "tensor":
            continue
        if not is_count(source, loop, begin):
            raise Refused(
                f"`{source.of(each)}` has a size that torch does not know in a loop: take it by `narrow`, where it never begins below zero"
            )
        text = f"{primary(source.of(each.value))}.narrow({dim}, {source.of(begin)}, {length})"
        swaps.append(source.swap(each, text))
    if not swaps:
        return None
    changed = Source(replaced(source.text, swaps))
    start = source.start(loop)
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == start)


def _slice_of(node: ast.AST) -> tuple[int, ast.expr, int] | None:
    """The dimension, the begin and the length of `x[:, i:i + 2]`; None where it is no such slice alone."""
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not all(isinstance(each, ast.Slice) for each in parts):
        return None
    cut = [
        (at, each)
        for at, each in enumerate(parts)
        if isinstance(each, ast.Slice) and (each.lower or each.upper)
    ]
    if len(cut) != 1 or any(isinstance(each, ast.Slice) and each.step for each in parts):
        return None
    at, part = cut[0]
    if part.lower is None or not isinstance(part.upper, ast.BinOp) or not isinstance(part.upper.op, ast.Add):
        return None
    length = written_int(part.upper.right)
    same = ast.dump(part.upper.left) == ast.dump(part.lower)
    return (at, part.lower, length) if same and length is not None and length > 0 else None


def _is_joined(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    listed = source.parents[node]
    call = source.parents[listed] if isinstance(listed, (ast.List, ast.Tuple)) else None
    return isinstance(call, ast.Call) and kinds.qualified(call.func) in _JOINING


def _scaled(source: Source, node: ast.expr, kinds: Kinds) -> ast.expr:
    """The arithmetic with numbers around `node`, which leaves its size as it is."""
    parent = source.parents[node]
    if isinstance(parent, ast.UnaryOp):
        return _scaled(source, parent, kinds)
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is node else parent.left
        if kinds.of(other).what in ("number", "size", "scalar"):
            return _scaled(source, parent, kinds)
    return node


def _is_beside_tensor(source: Source, node: ast.expr) -> bool:
    parent = source.parents[node]
    return isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.MatMult)
