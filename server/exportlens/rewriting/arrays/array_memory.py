"""Which arrays may be of the same memory: a number that NumPy picks is a copy, where a tensor is a view of what it is picked from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from exportlens.rewriting.arrays.array_pieces import is_made_here
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.memory.moving import writes, written_bases

_NUMBERS = ("abs", "bool", "float", "int", "len", "max", "min", "range", "round", "sum")
_ROUNDS = (ast.For, ast.While, ast.comprehension, ast.ListComp, ast.GeneratorExp)
_PUT = ("append", "extend", "insert")
_FILLING = ("at", "copyto", "fill_diagonal", "put", "putmask")
_SIZES = ("dtype", "ndim", "shape", "size")


def writes_arrays(nodes: Iterable[ast.AST]) -> bool:
    """Whether `nodes` write in place, as they are written, by what NumPy alone has as well."""
    nodes = list(nodes)
    return writes(nodes) or any(True for node in nodes for _ in _filled(node))


def _filled(scope: ast.AST) -> Iterator[ast.expr]:
    """What `a.fill(0)`, `np.add.at(a, i, 1)` and `np.fill_diagonal(a, 0)` write to."""
    for each in ast.walk(scope):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            if each.func.attr == "fill":
                yield each.func.value
            elif each.func.attr in _FILLING:
                yield from each.args[:1]


def is_kept(source: Source, node: ast.Subscript) -> bool:
    """Whether what `node` picks is kept as it is, and not only computed with."""
    parent = source.parents.get(node)
    around = source.parents.get(parent) if isinstance(parent, (ast.List, ast.Tuple)) else None
    if isinstance(around, (ast.Assign, ast.Call)):
        # What is written into an array, or put together with others, is copied there.
        parent = around
    if isinstance(parent, ast.Assign):
        return any(not isinstance(each, ast.Subscript) for each in parent.targets)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in _PUT
    kept = (ast.AnnAssign, ast.NamedExpr, ast.Tuple, ast.List, ast.Dict, ast.Return, ast.IfExp, ast.keyword)
    return isinstance(parent, kept)


def is_written(source: Source, node: ast.expr, functions: Sequence[Function]) -> bool:
    """Whether `functions` may write to the memory of `node` once it is evaluated."""
    near = set(_shared(node))
    links = [each for function in functions for each in _links(function, functions)]
    grown = True
    while grown:
        grown = False
        for one in links:
            if one & near and not one <= near:
                near |= one
                grown = True
    own = source.enclosing_function(node)
    rounds = {each for each in source.ancestors(node) if isinstance(each, _ROUNDS)}
    for function in functions:
        for base in (*written_bases(function), *_filled(function)):
            before = function is own and source.start(base) < source.end(node)
            again = before and any(each in rounds for each in source.ancestors(base))
            if (again or not before) and any(name in near for name in _shared(base)):
                return True
    return False


def _links(function: Function, functions: Sequence[Function]) -> Iterator[set[str]]:
    """The names that may be of the same memory, as one statement or call after the other says."""
    for each in ast.walk(function):
        if isinstance(each, ast.Assign):
            yield {name for target in each.targets for name in _shared(target)} | set(_shared(each.value))
        elif isinstance(each, (ast.AnnAssign, ast.NamedExpr)) and each.value is not None:
            yield {*_shared(each.target), *_shared(each.value)}
        elif isinstance(each, (ast.For, ast.comprehension)):
            yield {*_shared(each.target), *_shared(each.iter)}
        elif isinstance(each, ast.Call):
            yield from _of_call(each, functions)


def _of_call(call: ast.Call, functions: Sequence[Function]) -> Iterator[set[str]]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [*call.args, *(key.value for key in call.keywords)]
    if name in _PUT:
        yield set(_shared(call.func)) | {each for one in given for each in _shared(one)}
    for each in functions:
        if each.name == name:
            names = {one.arg for one in arguments(each.args)} - {"self"}
            yield names | {name for one in given for name in _shared(one)}


def _shared(node: ast.AST) -> Iterator[str]:
    """The names whose memory `node` may be of."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant)):
        return
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        name = dotted(node)
        if node.attr in _SIZES:
            return
        if name is not None and name.startswith("self."):
            yield name
        else:
            yield from _shared(node.value)
    elif isinstance(node, ast.Subscript):
        yield from _shared(node.value)
    elif isinstance(node, ast.Call):
        if is_made_here(node) or (isinstance(node.func, ast.Name) and node.func.id in _NUMBERS):
            return
        yield from _of_all([node.func, *node.args, *(key.value for key in node.keywords)])
    else:
        yield from _of_all(ast.iter_child_nodes(node))


def _of_all(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for each in nodes:
        yield from _shared(each)
