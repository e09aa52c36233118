"""What is read from a tensor and used up: whether it was a view or a copy then makes no difference."""

from __future__ import annotations

import ast

from exportlens.inference import knowledge
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import loaded, own_expressions, visit, writes_of
from exportlens.source.walking import walk

# What builtins of Python make of a tensor keeps nothing of it.
_BUILTINS = frozenset({"bool", "float", "int", "len", "print", "str"})
# What is no tensor.
_ATTRIBUTES = frozenset({"device", "dtype", "ndim", "shape"})


def is_used_up(source: Source, node: ast.expr, statement: ast.stmt, kinds: Kinds) -> bool:
    """Whether nothing keeps what `node` reads in `statement` until its tensor is written: it is computed with, asked for its truth, or
    copied into a tensor, and so is all that a name gives of it before the next write."""
    if _is_written_through(source, node):
        return False
    if _goes_into_new(source, node, kinds):
        return True
    if isinstance(statement, ast.AugAssign):
        return kinds.of(loaded(statement.target)).what == "tensor"
    if not isinstance(statement, ast.Assign):
        return False
    if kinds.of(statement.value).fresh:
        return True
    if all(
        isinstance(each, ast.Subscript) and kinds.of(each.value).what == "tensor"
        for each in statement.targets
    ):
        return True
    return statement.value is node and _name_is_gone(source, statement, kinds)


def _is_written_through(source: Source, node: ast.expr) -> bool:
    """Whether an item of `node` is written: `node[j] = 1`."""
    outer: ast.AST = node
    while isinstance(parent := source.parents.get(outer), (ast.Subscript, ast.Attribute)):
        if parent.value is not outer:
            return False
        outer = parent
    return outer is not node and not isinstance(getattr(outer, "ctx", None), ast.Load)


def _goes_into_new(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether the expression around `node` computes with it, and gives nothing of its memory."""
    parent = source.parents[node]
    if isinstance(parent, (ast.BinOp, ast.Compare, ast.FormattedValue)):
        return True
    if isinstance(parent, ast.UnaryOp):
        return not isinstance(parent.op, ast.UAdd)
    if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)) and parent.test is node:
        return True
    if isinstance(parent, ast.comprehension) and node in parent.ifs:
        return True
    if isinstance(parent, ast.BoolOp):
        return _goes_into_new(source, parent, kinds)
    if isinstance(parent, ast.Attribute):
        around = source.parents[parent]
        if isinstance(around, ast.Call) and around.func is parent:
            return _gives_new(around, kinds)
        return parent.attr in _ATTRIBUTES
    if isinstance(parent, ast.Subscript) and parent.value is not node:
        return kinds.of(parent.value).what == "tensor"
    if isinstance(parent, ast.Tuple):
        around = source.parents[parent]
        return (
            isinstance(around, ast.Subscript)
            and around.slice is parent
            and kinds.of(around.value).what == "tensor"
        )
    if isinstance(parent, ast.keyword) and parent.arg not in (None, "out"):
        parent = source.parents[parent]
    return isinstance(parent, ast.Call) and parent.func is not node and _gives_new(parent, kinds)


def _gives_new(call: ast.Call, kinds: Kinds) -> bool:
    """Whether `call`, of an operator or of a builtin, gives a new tensor or a number."""
    name = kinds.qualified(call.func)
    if isinstance(call.func, ast.Name) and call.func.id in _BUILTINS:
        return call.func.id not in kinds.names
    method = isinstance(call.func, ast.Attribute) and kinds.of(call.func.value).what == "tensor"
    if not (method or (name is not None and knowledge.lookup_function(name) is not None)):
        return False
    if any(True for _ in writes_of(ast.Expr(call), kinds)):
        return False
    given = kinds.of(call)
    return given.what in ("number", "scalar", "size") or (given.what == "tensor" and given.fresh)


def _name_is_gone(source: Source, statement: ast.Assign, kinds: Kinds) -> bool:
    """Whether the one name that `statement` binds is used up before what it is a view of is written, and read nowhere else."""
    target, function = statement.targets[0], source.enclosing_function(statement)
    if len(statement.targets) != 1 or not isinstance(target, ast.Name) or function is None:
        return False
    roots = kinds.of(statement.value).roots
    if roots is None:
        return False
    block, index = source.block_of(statement)
    reads = {
        id(each)
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == target.id and isinstance(each.ctx, ast.Load)
    }
    now = kinds.copy()
    now.run([statement])
    for each in block[index + 1 :]:
        written = _writes_to(each, now, roots)
        used: set[int] = set()
        if not _uses_up_name(source, each, target.id, now, used, inside=not written):
            return False
        reads -= used
        if written:
            break
        now.run([each])
    return not reads


def _writes_to(statement: ast.stmt, kinds: Kinds, roots: frozenset[str]) -> bool:
    """Whether `statement`, or one inside of it, may write to memory of `roots`."""
    found: list[bool] = []

    def see(each: ast.stmt, now: Kinds) -> None:
        for write in writes_of(each, now):
            base = now.of(loaded(write.base)).roots
            found.append(base is None or bool(base & roots))

    visit([statement], kinds.copy(), see)
    return any(found)


def _uses_up_name(
    source: Source, statement: ast.stmt, name: str, kinds: Kinds, used: set[int], *, inside: bool
) -> bool:
    """Whether `statement` uses up each `name` that it reads, which are put into `used`: those of the statements `inside` of it as well, or
    only those that it reads before it writes."""
    kept: list[ast.expr] = []

    def see(each: ast.stmt, now: Kinds) -> None:
        if not inside and (each is not statement or isinstance(each, (ast.For, ast.While))):
            return
        for part in own_expressions(each):
            if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
                used.add(id(part))
                if not is_used_up(source, part, each, now):
                    kept.append(part)

    visit([statement], kinds.copy(), see)
    return not kept
