"""What raises behind a branch that returns on each of its ways is the branch's last way.

if t.sum() > 0:                 if t.sum() > 0:
    return t            ->          return t
raise ValueError("low")         else:
                                    raise ValueError("low")
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.liveness import certainly_read, exits
from exportlens.rewriting.code.names import arguments, bound
from exportlens.rewriting.code.text import Function, Source
from exportlens.source.walking import walk


def last_way(node: ast.If) -> ast.If:
    """The last `elif` of `node`, or itself."""
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
    return node


def error_as_way(source: Source, node: ast.If) -> tuple[Source, ast.If] | None:
    """The text where the error behind `node` is its last way, and `node` of it; None where there is none."""
    last = last_way(node)
    block, index = source.block_of(node)
    rest = block[index + 1 :]
    if last.orelse or not rest or exits(rest) != {"raises"} or not source.begins_line(rest[0]):
        return None
    each: ast.If = node
    while exits(each.body) == {"returns"} and each is not last and isinstance(each.orelse[0], ast.If):
        each = each.orelse[0]
    if each is not last or exits(last.body) != {"returns"}:
        return None
    indent = source.indent_of(node)
    first, end = source.span(rest)
    begin = source.line_start(first)
    moved = source.block(rest, indent + source.indent_unit())
    text = f"{source.text[:begin].rstrip()}{source.newline}{indent}else:{source.newline}{moved}{source.text[end:]}"
    changed = Source(text)
    return changed, changed.branch_at(source.start(node))


def unbound_as_way(source: Source, node: ast.If) -> tuple[Source, ast.If] | None:
    """The text where a way that leaves a name unbound, which is read behind in any case, raises as Python does, and `node` of it.

    if k == 0:                      if k == 0:
        y = self.first(x)               y = self.first(x)
    elif k == 1:            ->      elif k == 1:
        y = self.second(x)              y = self.second(x)
    return y                        else:
                                        raise UnboundLocalError("y is not bound")
                                    return y
    """
    last, function = last_way(node), source.enclosing_function(node)
    if last.orelse or function is None or not source.begins_line(last.body[0]):
        return None
    name = next((each for each in bound(last.body) if _is_unbound(source, node, function, each)), None)
    if name is None:
        return None
    indent, end = source.indent_of(node), source.span(last.body)[1]
    error = f'{indent}{source.indent_unit()}raise UnboundLocalError("{name} is not bound")'
    text = f"{source.text[:end]}{source.newline}{indent}else:{source.newline}{error}{source.text[end:]}"
    changed = Source(text)
    return changed, changed.branch_at(source.start(node))


def _is_unbound(source: Source, node: ast.If, function: Function, name: str) -> bool:
    """Whether nothing binds `name` before `node`, and what follows reads it whenever it is reached."""
    if not _is_read_behind(source, node, name) or name in {each.arg for each in arguments(function.args)}:
        return False
    if name in bound(node.test):
        return False
    begin, around = source.start(node), set(source.ancestors(node))
    for each in walk(function):
        if isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names:
            return False
        if isinstance(each, ast.stmt) and source.start(each) < begin and each not in around:
            if name in bound(each):
                return False
        elif isinstance(each, (ast.With, ast.AsyncWith)) and name in bound(each.items):
            return False
    return True


def _is_read_behind(source: Source, node: ast.If, name: str) -> bool:
    statement: ast.stmt = node
    while True:
        block, index = source.block_of(statement)
        for each in block[index + 1 :]:
            added = isinstance(each, ast.AugAssign) and bound(each.target) == [name]
            if added or name in certainly_read(each):
                break
            if name in bound(each) or exits([each]) != {"falls"}:
                return False
        else:
            parent = source.parents[statement]
            if not isinstance(parent, ast.With):
                return False
            statement = parent
            continue
        # In a loop the round before may have bound it, and an error may be caught.
        return not _is_in_a_loop(source, statement)


def _is_in_a_loop(source: Source, statement: ast.stmt) -> bool:
    for each in source.ancestors(statement):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(each, (ast.For, ast.AsyncFor, ast.While, ast.Try)):
            return True
    return False
