"""Powers of whole numbers in the body of a while_loop: `2 ** t` for a count `t`, which is a symbol there.

Measured on torch 2.13: of a symbolic exponent Python's power of an int asks whether it is negative, which fails in eager, too;
`2 ** abs(t)` does not ask. Powers of a negative int are wrong then, and those of a negative float fail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeVar

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import certainly_bound_before
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.ranges import bounds_of, written_int
from exportlens.rewriting.code.text import Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.counters import start_of
from exportlens.source.walking import walk

_Loop = TypeVar("_Loop", ast.While, ast.While | ast.For)


def powers_of_counts(source: Source, loop: _Loop, kinds: Kinds) -> tuple[Source, _Loop] | None:
    """The text where torch can trace the powers of ints in the body of `loop`, which becomes a while_loop, and the loop of it; None
    where it has none. Raises Refused where an exponent may be negative."""
    symbols = symbols_in(source, loop, kinds)
    swaps = []
    for base, exponent in _powers(loop):
        if not reads(exponent) & symbols or kinds.of(base).what == "tensor" or _is_absolute(exponent):
            continue
        below = _is_negative(base)
        if kinds.of(base).type == "float" and not below:
            continue
        number = written_int(base)
        if below or number == 0 or not is_count(source, loop, exponent):
            raise Refused(
                f"`{source.of(base)} ** {source.of(exponent)}` is no power that torch traces where the exponent may be negative, or "
                "the base is: write a base that is a float above zero, as `2.0`"
            )
        swaps.append(source.swap(exponent, f"abs({source.of(exponent)})"))
    if not swaps:
        return None
    changed = Source(replaced(source.text, swaps))
    begin = source.start(loop)
    same = (each for each in walk(changed.tree) if isinstance(each, type(loop)))
    return changed, next(each for each in same if changed.start(each) == begin)


def symbols_in(source: Source, loop: ast.For | ast.While, kinds: Kinds) -> set[str]:
    """The numbers that are symbols in the body: what each round hands on, the counter, and what is computed of them."""
    function = source.enclosing_function(loop)
    before = set() if function is None else certainly_bound_before(function, loop)
    inner = {
        name
        for each in walk(loop)
        if isinstance(each, ast.For) and each is not loop
        for name in bound(each.target)
    }
    symbols = {name for name in bound(loop.body) if name in before} - inner
    symbols |= {name for name, kind in kinds.names.items() if kind.what == "scalar"}
    symbols |= set(bound(loop.target)) if isinstance(loop, ast.For) else set()
    for each in walk(loop):
        if isinstance(each, ast.Assign) and reads(each.value) & symbols:
            symbols |= set(bound(each))
    inside = kinds.copy()
    inside.run(loop.body)
    return {name for name in symbols if inside.names.get(name) is None or inside.names[name].what != "tensor"}


def _powers(loop: ast.For | ast.While) -> Iterator[tuple[ast.expr, ast.expr]]:
    for each in walk(loop):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Pow):
            yield each.left, each.right
        elif (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Name)
            and each.func.id == "pow"
            and len(each.args) == 2
        ):
            yield each.args[0], each.args[1]


def _is_negative(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _is_absolute(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs"


def is_count(source: Source, loop: ast.For | ast.While, node: ast.expr) -> bool:
    """Whether `node` counts from zero or more, upwards, plus a number that is written."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        more = written_int(node.right)
        return more is not None and more >= 0 and is_count(source, loop, node.left)
    if not isinstance(node, ast.Name):
        return False
    if isinstance(loop, ast.For) and node.id in bound(loop.target):
        bounds = bounds_of(loop.iter)
        return bounds is not None and bounds[0] >= 0 and bounds[2] > 0
    start = start_of(source, loop, node.id)
    if start is None or type(start.value) is not int or start.value < 0:
        return False
    return all(_counts_on(source, each, node.id) for each in walk(loop) if _stores(each, node.id))


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _counts_on(source: Source, target: ast.AST, name: str) -> bool:
    statement = source.parents[target]
    step = None
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        step = written_int(statement.value)
    elif (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.BinOp)
        and isinstance(statement.value.op, ast.Add)
        and getattr(statement.value.left, "id", "") == name
    ):
        step = written_int(statement.value.right)
    return step is not None and step >= 0
