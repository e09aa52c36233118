"""Numbers that are read out of one tensor before and behind a torch.cond: behind it, out of a copy.

Measured on torch 2.13: strict tracing gives both reads one symbol, which the program that it makes then reads twice ("AssertionError:
u2 -> u0").

    y = torch.cond(x.sum() > limit.item(), if_true, if_false, ())
    return y * limit.item()                                         ->    return y * limit.clone().item()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.memory.moving import written_bases

_NUMBERS = frozenset({"int", "float", "bool"})
# What gives the very tensor where it is of that dtype, or on that device.
_SAME = frozenset({"long", "int", "double", "float", "bool", "cpu"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def numbers_read_again(before: Source, node: ast.AST, text: str) -> str:
    """`text`, made of `before`, in which the function around `node` reads no number twice of one tensor with a torch.cond between."""
    source = Source(text)
    function = source.same_function(before, node)
    if function is None:
        return text
    swaps = []
    for call, path in _reads(function):
        if isinstance(call.func, ast.Attribute) and is_read_again(source, function, call, path):
            end = source.end(call.func.value)
            swaps.append(Replacement(end, end, ".clone()"))
    return replaced(text, swaps) if swaps else text


def is_read_again(source: Source, function: Function, call: ast.Call, path: str) -> bool:
    """Whether the number that `call` reads out of the tensor at `path` was read before a torch.cond that runs before it."""
    choices = [
        each
        for each in _own(function)
        if isinstance(each, ast.Call) and (dotted(each.func) or "").rpartition(".")[2] == "cond"
    ]
    if not choices:
        return False
    at, head = source.start(call), path.partition(".")[0]
    for loop in source.ancestors(call):
        if loop is function:
            break
        if isinstance(loop, (ast.For, ast.While)) and not {head, path} & _changed(loop):
            inside = (source.start(loop), source.end(loop))
            if any(inside[0] <= source.start(each) < inside[1] for each in choices):
                return True
    earlier = [
        source.start(each) for each, one in _reads(function) if one == path and source.start(each) < at
    ]
    if not earlier:
        return False
    anew = [
        source.end(each)
        for each in _own(function)
        if isinstance(each, ast.stmt)
        and not isinstance(each, (ast.For, ast.While, ast.If, ast.With, ast.Try))
        if {head, path} & _changed(each)
    ]
    return any(
        begin < source.end(each) <= at and not any(begin < one <= at for one in anew)
        for begin in earlier
        for each in choices
    )


def _changed(node: ast.AST) -> set[str | None]:
    """The names and attributes that `node` binds or writes in place."""
    stored = (
        dotted(each)
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    )
    return {*bound(node), *stored, *map(dotted, written_bases(node))}


def _own(function: Function) -> Iterator[ast.AST]:
    """What runs in `function` itself, not in the functions and lambdas that it holds."""
    waiting = list[ast.AST](function.body)
    while waiting:
        each = waiting.pop()
        if not isinstance(each, _INNER):
            yield each
            waiting += ast.iter_child_nodes(each)


def _reads(function: Function) -> Iterator[tuple[ast.Call, str]]:
    """The calls that read a number out of a tensor that has a name, and its path."""
    own = list(_own(function))
    rounds = {name for each in own if isinstance(each, ast.comprehension) for name in bound(each.target)}
    for each in own:
        if not isinstance(each, ast.Call):
            continue
        read: ast.expr | None = None
        if isinstance(each.func, ast.Attribute) and each.func.attr == "item" and not each.args:
            read = each.func.value
        elif isinstance(each.func, ast.Name) and each.func.id in _NUMBERS and len(each.args) == 1:
            read = each.args[0]
        while isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute) and read.func.attr in _SAME:
            read = read.func.value
        path = None if read is None else dotted(read)
        # What a comprehension goes through is another one in each round.
        if path is not None and path.partition(".")[0] not in rounds:
            yield each, path
