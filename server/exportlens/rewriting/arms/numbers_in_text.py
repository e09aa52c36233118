"""Numbers of Python that an arm makes text of: `self.experts[f"expert_{i}"](x)`.

In eager mode torch compiles the arms anew for each round, and a number that the arm reads of the function around it becomes a symbol
as soon as it is another one; symbols make no text. The default of a parameter stays a number (measured on torch 2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_log
from exportlens.rewriting.memory.helper_writes import called_function, given_arguments
from exportlens.source.walking import walk

_DEEPEST = 3
_TO_TEXT = frozenset({"ascii", "format", "repr", "str"})


def numbers_in_text(statements: Sequence[ast.AST], kinds: Kinds) -> list[str]:
    """The names from outside of `statements` of which they, or a function that they hand them to, make text: numbers of Python, as far as
    is known. `kinds` are those before them."""
    own = set(bound(statements))
    found = _in_text(statements, kinds, 0)
    return [
        name
        for name in found
        if name not in own and name in kinds.names and kinds.names[name].what in ("number", "size", "unknown")
    ]


def carried_number_in_text(loop: ast.For | ast.While, kinds: Kinds) -> str | None:
    """The number of Python that `loop` counts, or sets anew, and makes text of for more than a print or a log; None where there is none."""
    counted = set(bound(loop.target)) if isinstance(loop, ast.For) else set()
    numbers = {
        name for name in bound(loop.body) if name in kinds.names and kinds.names[name].what == "number"
    }
    logs = [each for each in walk(loop) if isinstance(each, ast.Expr) and is_log(each.value, kinds)]
    logged = {id(inner) for each in logs for inner in walk(each)}
    nodes = [each for each in walk(loop) if is_made_text(each) and id(each) not in logged]
    return min((counted | numbers) & {name for each in nodes for name in reads(each)}, default=None)


def is_made_text(node: ast.AST) -> bool:
    """Whether `node` makes text of what it holds: `f"{i}"`, `str(i)`, `"%d" % i`, `"{}".format(i)`."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod) and _is_text(node.left)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            return node.func.attr == "format" and _is_text(node.func.value)
        return getattr(node.func, "id", "") in _TO_TEXT
    return isinstance(node, ast.JoinedStr)


def _in_text(nodes: Sequence[ast.AST], kinds: Kinds, depth: int) -> list[str]:
    found: dict[str, None] = {}
    eager = {
        id(inner)
        for one in nodes
        for each in walk(one)
        if isinstance(each, ast.If) and _asks_for_eager(each.test)
        for statement in each.body
        for inner in walk(statement)
    }
    for each in (each for one in nodes for each in walk(one) if id(each) not in eager):
        if is_made_text(each):
            found |= dict.fromkeys(sorted(reads(each)))
        elif isinstance(each, ast.Call) and depth < _DEEPEST:
            given = [*each.args, *(key.value for key in each.keywords)]
            if any(isinstance(one, ast.Name) for one in given):
                found |= dict.fromkeys(_handed_on(each, kinds, depth))
    return list(found)


def _handed_on(call: ast.Call, kinds: Kinds, depth: int) -> list[str]:
    """The names that `call` hands to a function of the workspace that makes text of them."""
    function, instance = called_function(call, kinds)
    if function is None:
        return []
    given = given_arguments(call, function, instance is not None)
    inside = set(_in_text(function.body, kinds.inside_of(function), depth + 1))
    return [value.id for name, value in given.items() if name in inside and isinstance(value, ast.Name)]


def _asks_for_eager(test: ast.expr) -> bool:
    """Whether what `test` leads to is never traced: `if not torch.compiler.is_compiling()`."""
    return (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and "is_compiling(" in ast.unparse(test)
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
