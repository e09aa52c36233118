"""Lists of numbers that start empty in a function and are appended to."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeVar

from exportlens.rewriting.code.names import appended_to, bound
from exportlens.rewriting.code.text import Function, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import kinds_before

_Statement = TypeVar("_Statement", ast.If, ast.For)


def started_apart(source: Source, node: _Statement) -> tuple[Source, _Statement]:
    """The text with a statement for each list where one starts several, `a, b = [], []`, and `node` of it."""
    function, begin = source.enclosing_function(node), source.start(node)
    swaps = []
    for each in function.body if function is not None else ():
        if (
            isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Tuple)
            and isinstance(each.value, ast.Tuple)
            and len(each.targets[0].elts) == len(each.value.elts)
            and all(isinstance(one, ast.Name) for one in each.targets[0].elts)
            and all(isinstance(one, ast.List) and not one.elts for one in each.value.elts)
            and source.begins_line(each)
            and source.end(each) < begin
        ):
            line = f"{source.newline}{source.indent_of(each)}"
            swaps.append(
                source.swap(each, line.join(f"{source.of(one)} = []" for one in each.targets[0].elts))
            )
    if not swaps:
        return source, node
    moved = sum(len(each.text) - (each.end - each.start) for each in swaps)
    changed = Source(replaced(source.text, swaps))
    found = (each for each in ast.walk(changed.tree) if isinstance(each, type(node)))
    return changed, next(each for each in found if changed.start(each) == begin + moved)


@dataclass(frozen=True, slots=True)
class StartedList:
    name: str
    start: ast.Assign
    value: ast.expr
    dtype: str | None
    # Where the name is bound to something else, if it is: `losses = sum(losses)`.
    end: int


def list_of(source: Source, function: Function, append: ast.stmt, kinds: Kinds) -> StartedList | None:
    """The list, where it starts empty in the function's own block and gets numbers of the default dtype."""
    name = appended_to(append)
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    stores.sort(key=source.start)
    start = source.parents[stores[0]] if stores else None
    anew = [source.parents[each] for each in stores[1:]]
    if any(not _is_behind(source, function, each, append) for each in anew):
        return None
    if (
        name is None
        or not isinstance(start, ast.Assign)
        or len(start.targets) != 1
        or ast.unparse(start.value) not in ("[]", "list()")
        or start not in function.body
        or not source.begins_line(start)
    ):
        return None
    assert isinstance(append, ast.Expr) and isinstance(append.value, ast.Call)
    value = kinds_before(function, append, kinds).of(append.value.args[0])
    if value.what != "tensor" or value.rank != 0 or value.dtype not in (None, "float", "float32"):
        return None
    end = source.end(anew[0]) if anew else source.end(function)
    return StartedList(name, start, append.value.args[0], value.dtype, end)


def _is_behind(source: Source, function: Function, node: ast.AST, append: ast.stmt) -> bool:
    """Whether the assignment `node` stands in the function's own block, behind the loop that appends."""
    return isinstance(node, ast.Assign) and node in function.body and source.start(node) > source.end(append)


def zero_of(found: StartedList, kinds: Kinds, torch: str, arm: list[ast.stmt]) -> str | None:
    """A zero like the values of the list."""
    inside = set(bound(arm))
    read = [each.id for each in ast.walk(found.value) if isinstance(each, ast.Name) and each.id not in inside]
    tensors = [name for name in read if (kind := kinds.names.get(name)) is not None and kind.what == "tensor"]
    # What is made of one tensor only mostly has its dtype.
    same = [name for name in tensors if kinds.names[name].dtype == found.dtype]
    if found.dtype != "float32" and same and len(same) == len(tensors):
        return f"{same[0]}.new_zeros(())"
    if found.dtype is None:
        return _zero_of_all(kinds, arm)
    return f"{torch}.zeros(())"


def _zero_of_all(kinds: Kinds, arm: list[ast.stmt]) -> str | None:
    """A zero of the dtype that the tensors from outside give, which `arm` computes with."""
    inside = set(bound(arm))
    names = dict.fromkeys(
        each.id
        for one in arm
        for each in ast.walk(one)
        if isinstance(each, ast.Name) and each.id in kinds.names and each.id not in inside
    )
    tensors = [
        name
        for name in names
        if kinds.names[name].what == "tensor"
        and not (kinds.names[name].dtype or "").startswith(("int", "uint", "bool"))
    ]
    return " + ".join(f"{name}.new_zeros(())" for name in tensors) if 0 < len(tensors) < 4 else None
