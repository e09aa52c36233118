"""`for i in range(n)` that tensor data leaves, and `i` read behind it: the number of the last round gets a name of its own, as
the loop that takes its place runs to its end."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk


def last_round_named(
    source: Source, loop: ast.For, kinds: Kinds, returned: bool = False
) -> tuple[Source, ast.For, Kinds] | None:
    """The text where what reads the loop's counter behind `loop` reads the last round's, the loop of it, and the kinds inside; None
    where nothing does, or that is not certain. What the loop returns reads that as well where it is `returned`: in the round that
    returns, both are the same number."""
    function = source.enclosing_function(loop)
    first = _first(loop)
    if (
        function is None
        or first is None
        or not isinstance(loop.target, ast.Name)
        or not source.begins_line(loop)
        or not source.begins_line(loop.body[0])
        or loop.target.id not in Liveness(function).live_after(loop)
    ):
        return None
    counter, taken = loop.target.id, every_name(source.tree)
    read = _read_behind(source, function, loop, counter)
    if read is None:
        return None
    within = _read_by_returns(source, loop, counter) if returned else []
    if returned and not within:
        return None
    name = fresh(f"last_{counter}", taken)
    begin, body = source.start(loop), source.start(loop.body[0])
    before = counter if _is_set_before(source, function, loop, counter) else first
    head = f"{name} = {before}{source.newline}{source.indent_of(loop)}"
    bound = f"{name} = {counter}{source.newline}{source.indent_of(loop.body[0])}"
    swaps = [Replacement(begin, begin, head), Replacement(body, body, bound)]
    changed = Source(replaced(source.text, [*swaps, *(source.swap(each, name) for each in [*within, *read])]))
    found = next(
        each
        for each in walk(changed.tree)
        if isinstance(each, ast.For) and changed.start(each) == begin + len(head)
    )
    now = kinds.copy()
    now.names[name] = Kind("number", type="int")
    return changed, found, now


def _first(loop: ast.For) -> str | None:
    """What the counter is in the first round."""
    call = loop.iter
    if (
        not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range")
        or call.keywords
    ):
        return None
    if len(call.args) == 1:
        return "0"
    start = call.args[0] if call.args else None
    return str(start.value) if isinstance(start, ast.Constant) and type(start.value) is int else None


def _read_behind(source: Source, function: Function, loop: ast.For, name: str) -> list[ast.Name] | None:
    """What reads `name` behind `loop`; None where something behind it binds it, or an inner function reads it."""
    uses = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
    stores = [each for each in uses if not isinstance(each.ctx, ast.Load)]
    alone = stores == [loop.target] or _is_set_before(source, function, loop, name)
    if not alone or any(source.enclosing_function(each) is not function for each in uses):
        return None
    return [each for each in uses if source.start(each) > source.end(loop)]


def _read_by_returns(source: Source, loop: ast.For, name: str) -> list[ast.Name]:
    """What reads `name` in the statements of `loop` that return."""
    returns = [each for each in walk(loop) if isinstance(each, ast.Return) and source.begins_line(each)]
    reading = [
        each for one in returns for each in walk(one) if isinstance(each, ast.Name) and each.id == name
    ]
    return [each for each in reading if isinstance(each.ctx, ast.Load)]


def _is_set_before(source: Source, function: Function, loop: ast.For, name: str) -> bool:
    """Whether the statements before `loop` set `name` to a number that is written, and nothing but `loop` binds it else."""
    block, index = source.block_of(loop)
    if block is not function.body:
        return False
    stores = [
        each
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    statements = [source.parents[each] for each in stores if each is not loop.target]
    return bool(statements) and all(
        isinstance(each, ast.Assign)
        and each in block[:index]
        and each.targets[-1:] == each.targets[:1]
        and isinstance(each.targets[0], ast.Name)
        and _is_whole(each.value)
        for each in statements
    )


def _is_whole(node: ast.expr) -> bool:
    """Whether `node` is an int that is written."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int
