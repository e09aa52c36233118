"""Branches whose sides do more in training: there the code stays as it was.

    if x.sum() > 0:                 if self.training:
        x = self.norm(x)                if x.sum() > 0:
                                            x = self.norm(x)
                             ->     else:
                                        ...
                                        x = torch.cond(x.sum() > 0, if_true, if_false, ())

Measured on torch 2.13: eager mode traces what torch.cond is given, too, and a BatchNorm that writes its statistics there raises, as
does whatever else a side writes, or asks of data, in training alone.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator

from exportlens.inference.classes import class_order, is_module_class
from exportlens.inference.values import ClassValue, Const, Instance, Mapping_, Named, Sequence, Value
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

# How deep modules in modules are looked at.
_DEEPEST = 6


def kept_in_training(source: Source, node: ast.AST, kinds: Kinds, text: str) -> str | None:
    """`text`, which the rewrite of `node` makes of `source`, with the statements as they were for training; None where they do nothing
    of their own there, or more than they alone is written anew."""
    statement = source.enclosing_statement(node)
    function = source.enclosing_function(statement)
    owner = source.parents.get(function) if function is not None else None
    if function is None or not isinstance(owner, ast.ClassDef) or not function.args.args:
        return None
    me = function.args.args[0].arg
    own = kinds.of(ast.Name(me, ast.Load())).value
    if not isinstance(own, Instance) or not is_module_class(own.cls) or not source.begins_line(statement):
        return None
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    block, index = source.block_of(statement)
    first, tail = statement.lineno - 1, _same(before[::-1], after[::-1])
    if _same(before, after) < first:
        return None
    moved = [each for each in block[index:] if each is statement or each.lineno <= len(before) - tail]
    last = moved[-1].end_lineno or 0
    rest = len(before) - last
    if (
        rest > tail
        or not any(trains(each, kinds, me) for each in _in_arms(node, moved))
        or _has_long_texts(moved)
    ):
        return None
    indent, unit = source.indent_of(statement), source.indent_unit()
    old, new = ("".join(lines) for lines in (before[first:last], after[first : len(after) - rest]))
    if '"""' in new or "'''" in new:
        return None
    new = textwrap.indent(new.lstrip(source.newline), unit)
    lines = f"{indent}if {me}.training:{source.newline}{textwrap.indent(old, unit)}{indent}else:{source.newline}{new}"
    return "".join(before[:first]) + lines + "".join(before[last:])


def _in_arms(node: ast.AST, moved: list[ast.stmt]) -> list[ast.AST]:
    """What of the statements that are written anew may be in a side: the test of a branch is computed before it."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return [*node.body, *node.orelse, *moved[1:]] if isinstance(node, ast.If) else [*moved]


def _same(one: list[str], other: list[str]) -> int:
    """How many lines are the same at the beginning."""
    return next(
        (at for at, (mine, yours) in enumerate(zip(one, other, strict=False)) if mine != yours),
        min(len(one), len(other)),
    )


def _has_long_texts(statements: Iterable[ast.stmt]) -> bool:
    """Whether a text goes over several lines, which would get another indentation."""
    return any(
        isinstance(each, (ast.Constant, ast.JoinedStr)) and each.lineno != each.end_lineno
        for one in statements
        for each in walk(one)
    )


def trains(node: ast.AST, kinds: Kinds, me: str, depth: int = 0) -> bool:
    """Whether `node`, or a method that it calls, does in training alone what no arm takes, or runs a module that does."""
    for each in walk(node):
        # What the moved statements themselves write is handed out of the branch.
        if _asks_training(each, writing=depth > 0):
            return True
        if not isinstance(each, ast.Call):
            continue
        called = kinds.of(each.func).value
        if isinstance(called, Instance) and _changes_in_training(called, set()):
            return True
        path = dotted(each.func) or ""
        method = kinds.functions.get(path) if path.startswith(f"{me}.") and depth < _DEEPEST else None
        if method is not None and any(trains(one, kinds, me, depth + 1) for one in method.body):
            return True
    return False


def _changes_in_training(module: Instance, seen: set[int], depth: int = 0) -> bool:
    """Whether `module`, or one inside of it, does; `seen` are the modules and classes that were looked at."""
    for cls in class_order(module.cls):
        if isinstance(cls, Named) and "BatchNorm" in cls.name.rpartition(".")[2]:
            tracks = module.attributes.get("track_running_stats")
            return not (isinstance(tracks, Const) and tracks.value is False)
        if isinstance(cls, ClassValue) and id(cls) not in seen:
            seen.add(id(cls))
            if any(_asks_training(each, writing=True) for each in walk(cls.node)):
                return True
    if depth > _DEEPEST or id(module) in seen:
        return False
    seen.add(id(module))
    return any(
        _changes_in_training(inner, seen, depth + 1)
        for value in module.attributes.values()
        for inner in _modules(value)
    )


def _modules(value: Value) -> Iterator[Instance]:
    if isinstance(value, Instance):
        yield value
    elif isinstance(value, Sequence):
        for each in value.items or ([value.element] if value.element else []):
            yield from _modules(each)
    elif isinstance(value, Mapping_):
        for each in value.items.values():
            yield from _modules(each)


def _asks_training(node: ast.AST, writing: bool) -> bool:
    """Whether `node` is a branch on the mode of a module that may ask data, or, where `writing` says so, that writes."""
    if not isinstance(node, ast.If) or not _reads_mode(node.test):
        return False
    inner = [each for one in node.body for each in walk(one)]
    return (
        isinstance(node.test, ast.BoolOp) or any(map(_asks, inner)) or (writing and any(map(_writes, inner)))
    )


def _reads_mode(test: ast.expr) -> bool:
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(isinstance(each, ast.Attribute) and each.attr == "training" for each in parts)


def _asks(node: ast.AST) -> bool:
    return isinstance(node, (ast.If, ast.While)) or (isinstance(node, ast.Call) and _method(node) == "item")


def _writes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _method(node).endswith("_") and not _method(node).endswith("__")
    return isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)


def _method(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""
