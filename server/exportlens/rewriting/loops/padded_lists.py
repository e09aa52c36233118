"""Lists that a loop fills until data stops it, and that are then filled up to the number of rounds that it has at most.

    while len(errors) < steps:                last = ...
        errors.append(errors[-1])     ->      errors = [torch.where(run, each, last) for each, run in zip(errors, runs)]

Behind that statement the list has an item for each round, whatever data says.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from dataclasses import dataclass

from exportlens.rewriting.code.names import append_of, bound, reads
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.memory.moving import writes


@dataclass(frozen=True)
class Padding:
    """`statement` fills the list up with `item`, which is the list's own last one where it is None."""

    statement: ast.stmt
    item: ast.expr | None


def padding_of(source: Source, loop: ast.For, name: str, lists: Set[str]) -> Padding | None:
    """What fills the list `name`, one of the `lists` that `loop` fills, up behind it, in its own block, to as many items as
    `loop` has rounds."""
    rounds = _rounds(loop)
    block, index = source.block_of(loop)
    if rounds is None:
        return None
    for each in block[index + 1 :]:
        asked = each
        # The question whether there is anything to fill up asks nothing more.
        if (
            isinstance(each, ast.If)
            and len(each.body) == 1
            and not each.orelse
            and _is_short(each.test, name, rounds)
        ):
            asked = each.body[0]
        item = _filled(asked, name, rounds)
        if item is not None:
            whole = f"{name}[-1]" == ast.unparse(item)
            changed = _changed([loop, *block[index + 1 :]], rounds)
            if changed or writes([item]) or (not whole and reads(item) & lists):
                return None
            return Padding(each, None if whole else item)
    return None


def _changed(nodes: Sequence[ast.AST], rounds: str) -> bool:
    """Whether `nodes` bind what tells the number of rounds anew, or set an attribute of that name."""
    told = ast.parse(rounds, mode="eval")
    attributes = {each.attr for each in ast.walk(told) if isinstance(each, ast.Attribute)}
    set_there = (
        each.attr
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    )
    return bool(reads(told) & set(bound(nodes)) or attributes & set(set_there))


def _rounds(loop: ast.For) -> str | None:
    """How many rounds `loop` has that nothing leaves."""
    over = loop.iter
    if isinstance(over, ast.Call) and not over.keywords:
        called = ast.unparse(over.func)
        if called == "range" and (
            len(over.args) == 1 or (len(over.args) == 2 and ast.unparse(over.args[0]) == "0")
        ):
            return ast.unparse(over.args[-1])
        if called != "enumerate" or not over.args:
            return None
        over = over.args[0]
    return f"len({ast.unparse(over)})" if isinstance(over, (ast.Name, ast.Attribute)) else None


def _filled(node: ast.stmt, name: str, rounds: str) -> ast.expr | None:
    """What `node` appends to `name` until it has `rounds` items; None where it does something else."""
    if isinstance(node, ast.While) and not node.orelse and _is_short(node.test, name, rounds):
        return _appended(node.body, name)
    if isinstance(node, ast.For) and not node.orelse and isinstance(node.iter, ast.Call):
        missing = [f"range({rounds} - len({name}))", f"range(len({name}), {rounds})"]
        item = _appended(node.body, name) if ast.unparse(node.iter) in missing else None
        return None if item is None or reads(item) & set(bound(node.target)) else item
    value: ast.expr | None = None
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and ast.unparse(node.target) == name:
        value = node.value
    elif isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [name]:
        own = node.value
        if isinstance(own, ast.BinOp) and isinstance(own.op, ast.Add) and ast.unparse(own.left) == name:
            value = own.right
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and len(node.value.args) == 1:
        value = node.value.args[0] if ast.unparse(node.value.func) == f"{name}.extend" else None
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)):
        return None
    one, times = value.left, value.right
    if isinstance(times, ast.List):
        one, times = times, one
    alone = (
        isinstance(one, ast.List) and len(one.elts) == 1 and ast.unparse(times) == f"{rounds} - len({name})"
    )
    return one.elts[0] if alone and isinstance(one, ast.List) else None


def _appended(body: list[ast.stmt], name: str) -> ast.expr | None:
    found = append_of(body[0]) if len(body) == 1 else None
    return found[1] if found is not None and found[0] == name else None


def _is_short(test: ast.expr, name: str, rounds: str) -> bool:
    """Whether `test` asks if `name` has fewer than `rounds` items."""
    texts = (
        f"len({name}) < {rounds}",
        f"{rounds} > len({name})",
        f"len({name}) != {rounds}",
        f"{rounds} != len({name})",
    )
    return ast.unparse(test) in texts
