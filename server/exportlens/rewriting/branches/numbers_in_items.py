"""Numbers in a dict or list that each round of a loop chooses anew: `for x in rows: if x > 0: seen["kept"] += 1`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.text import Function, Source


def refuse_items_read_back(source: Source, node: ast.If, function: Function, names: Iterable[str]) -> None:
    """Raise Refused where one of `names`, numbers that are read back behind the branch `node`, stands for an item that the next
    round of a loop takes into torch.cond again, which takes in no number from data (measured on torch 2.13, not strict)."""
    loops = []
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, (ast.For, ast.While)):
            loops.append(each)
    if not loops:
        return
    # What each round numbers anew has an item of its own in each.
    own = _numbers_of_rounds(loops[0]) if len(loops) == 1 else ""
    block, index = source.block_of(node)
    read = {
        ast.unparse(each.targets[0]): ast.unparse(each.value)
        for each in block[:index]
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Subscript)
        and ast.unparse(each.value.slice) != own
    }
    written = {
        (ast.unparse(each.value), ast.unparse(each.targets[0]))
        for each in block[index + 1 :]
        if isinstance(each, ast.Assign)
    }
    for name in names:
        item = read.get(name)
        if item is not None and (name, item) in written:
            raise Refused(
                f"`{item}` is a Python number that tensor data would choose in each round, and torch.cond takes in none from "
                "the round before: start with a tensor, as `torch.tensor(0)`"
            )


def _numbers_of_rounds(loop: ast.For | ast.While) -> str:
    """The name of the number that each round of `loop` has for itself; "" where there is none."""
    called = (
        ast.unparse(loop.iter.func) if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) else ""
    )
    target = loop.target if isinstance(loop, ast.For) else None
    if called == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif called != "range":
        return ""
    return target.id if isinstance(target, ast.Name) and target.id not in bound(loop.body) else ""
