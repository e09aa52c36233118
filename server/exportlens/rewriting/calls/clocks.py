"""Clocks: the time that a model takes is measured in eager, and no number of a program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.checks.guards import statement_not_while_compiling
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused, plain_call
from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_log

_CLOCKS = frozenset(
    f"time.{name}"
    for name in (
        "time",
        "time_ns",
        "perf_counter",
        "perf_counter_ns",
        "monotonic",
        "monotonic_ns",
        "process_time",
    )
)


def clock_in_eager_only(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`time.time()` -> `time.time() if not torch.compiler.is_compiling() else 0.0`, where the time is only told: printed,
    logged, or kept on the model."""
    try:
        if place.name == "time.sleep":
            return statement_not_while_compiling(place, context)
        draft, node = plain_call(place, context)
        source = draft.source
        if place.name not in _CLOCKS:
            raise Refused("what the time is for is not provable: read the clock where the model is called")
        if not _is_told(source, node, draft.kinds({}), frozenset()):
            raise Refused("the time is computed with: read the clock where the model is called")
        zero = "0" if place.name.endswith("_ns") else "0.0"
        text = f"{source.of(node)} if not {draft.torch}.compiler.is_compiling() else {zero}"
        bare = isinstance(source.parents[node], ast.Assign)
        change = source.swap(node, text if bare else f"({text})")
        return draft.replace("Read the clock in eager only", [change], Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_told(source: Source, node: ast.AST, kinds: Kinds, seen: frozenset[str]) -> bool:
    """Whether a number goes nowhere but into what is printed, logged, or kept on the model."""
    around = source.parents[node]
    while not isinstance(around, ast.stmt):
        if isinstance(around, ast.expr) and is_log(around, kinds):
            return True
        if _is_kept(source, around) and isinstance(source.parents[around], ast.Expr):
            return True
        rounded = isinstance(around, ast.Call) and dotted(around.func) in ("round", "str", "float", "int")
        if not rounded and not isinstance(
            around, (ast.BinOp, ast.FormattedValue, ast.JoinedStr, ast.UnaryOp)
        ):
            return False
        around = source.parents[around]
    if not isinstance(around, (ast.Assign, ast.AugAssign)):
        return False
    targets = around.targets if isinstance(around, ast.Assign) else [around.target]
    targets = [each for each in targets if not _is_item_kept(source, each)]
    if not all(isinstance(each, (ast.Name, ast.Attribute)) for each in targets):
        return False
    paths = {dotted(each) or "" for each in targets} - seen
    return all(
        _is_told(source, read, kinds, seen | paths) for path in paths for read in _reads(source, around, path)
    )


def _is_kept(source: Source, node: ast.AST) -> bool:
    """`self.times.append(...)`, `TIMES[name].append(...)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and _outlives(source, node.func.value)
    )


def _is_item_kept(source: Source, node: ast.expr) -> bool:
    """`self.times[name] = ...`."""
    return isinstance(node, ast.Subscript) and _outlives(source, node.value)


def _outlives(source: Source, node: ast.expr) -> bool:
    """Whether `node` is what a model, a class or the file holds, or an item of that."""
    while isinstance(node, ast.Subscript):
        node = node.value
    head = (dotted(node) or "").partition(".")[0]
    function = source.enclosing_function(node)
    while function is not None and head != "self":
        if head in bound(function.body) or head in {each.arg for each in arguments(function.args)}:
            return False
        function = source.enclosing_function(function)
    return bool(head) and (head != "self" or isinstance(node, ast.Attribute))


def _reads(source: Source, statement: ast.stmt, path: str) -> Iterator[ast.expr]:
    """Where a name of the function, or an attribute of the model in its whole class, is read."""
    scope = source.tree if "." in path else source.enclosing_function(statement) or source.tree
    for each in ast.walk(scope):
        if (
            isinstance(each, (ast.Name, ast.Attribute))
            and isinstance(each.ctx, ast.Load)
            and dotted(each) == path
        ):
            yield each
