"""Attributes of the model that are written before a branch are written behind it, so that nothing comes between two writes.

    self.mean = x.mean(1)                        mean = x.mean(1)
    if (x - self.mean).abs().max() > 3:          if (x - mean).abs().max() > 3:
        x = x.clamp(-3, 3)                 ->        x = x.clamp(-3, 3)
    self.scale = x.std()                         self.mean = mean
    return x * self.scale                        self.scale = x.std()
                                                 return x * self.scale

Strict tracing loses what is written to an object behind torch.cond where something was written to it before (see `lost_writes`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from exportlens.finding import Applicability, Fix
from exportlens.lost_writes import lost_attribute
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

# Methods that would see when an attribute is written.
_WATCHING = frozenset({"__setattr__", "__getattr__", "__getattribute__"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class _Write:
    """`self.attr = value`, or `setattr(self, "attr", value)`."""

    statement: ast.stmt
    attr: str
    value: ast.expr


def written_behind(place: tuple[Chunk, ast.AST], context: RewriteContext) -> Fix | None:
    """The fix that writes what the function around `place` writes to the model before it behind it; None where it is not certain that
    this does the same, or where something would be lost all the same."""
    try:
        draft = Draft.of_chunk(place[0], context)
        found = draft.source.find(place[1])
    except (LookupError, SyntaxError):
        return None
    source, function = draft.source, draft.source.enclosing_function(found)
    owner = source.parents.get(function) if function is not None else None
    if function is None or not isinstance(owner, ast.ClassDef) or not function.args.args:
        return None
    if function.args.args[0].arg != "self" or _WATCHING & {getattr(each, "name", "") for each in owner.body}:
        return None
    swaps = _swaps(draft, function, owner, source.enclosing_statement(found))
    if not swaps:
        return None
    start = source.start(found)
    start += sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= start)
    changed = Source(replaced(source.text, swaps))
    for each in walk(changed.tree):
        if type(each) is type(found) and changed.start(each) == start:
            if lost_attribute([(changed.tree.body, each)]) is not None:
                return None
            return draft.replace(
                "Write what the model keeps behind the branch", swaps, Applicability.UNSAFE, uses_torch=False
            )
    return None


def _swaps(draft: Draft, function: Function, owner: ast.ClassDef, goal: ast.stmt) -> list[Replacement]:
    source, taken = draft.source, draft.taken(draft.source.tree)
    statement: ast.AST = goal
    swaps: list[Replacement] = []
    while statement is not function:
        if isinstance(statement, ast.stmt):
            block, index = source.block_of(statement)
            behind: list[str] = []
            for number, each in enumerate(block[:index]):
                write, between = _write(each), block[number + 1 : index + 1]
                if write is None or not _may_wait(source, write, between, owner):
                    continue
                made = _kept(source, write, between, taken)
                if made is None:
                    continue
                name, more = made
                swaps += more
                behind.append(f"self.{write.attr} = {name}")
            if behind:
                end = source.span([statement])[1]
                line = source.newline + source.indent_of(statement)
                swaps.append(Replacement(end, end, "".join(line + each for each in behind)))
        statement = source.parents[statement]
    return swaps


def _write(statement: ast.stmt) -> _Write | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and dotted(target) == f"self.{target.attr}":
            return _Write(statement, target.attr, statement.value)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and dotted(call.func) == "setattr" and len(call.args) == 3:
        owner, attr, value = call.args
        if dotted(owner) == "self" and isinstance(attr, ast.Constant) and isinstance(attr.value, str):
            return _Write(statement, attr.value, value) if attr.value.isidentifier() else None
    return None


def _may_wait(source: Source, write: _Write, between: Sequence[ast.stmt], owner: ast.ClassDef) -> bool:
    """Whether nobody can tell that `write` comes after `between`, where its attribute is read by name alone."""
    methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
    if write.attr in methods or exits(between) != {"falls"} or not source.begins_line(write.statement):
        return False
    derived = not all((dotted(each) or "").endswith("Module") for each in owner.bases)
    for statement in between:
        for each in walk(statement):
            if isinstance(each, ast.Name) and each.id == "self":
                parent = source.parents[each]
                if not isinstance(parent, ast.Attribute):
                    return False
                if parent.attr == write.attr and not isinstance(parent.ctx, ast.Load):
                    return False
                if parent.attr == write.attr and any(
                    isinstance(one, _INNER) for one in source.around(each, [statement])
                ):
                    return False
                if parent.attr in methods and _may_read(methods, parent.attr, write.attr, set()):
                    return False
                if derived and parent.attr not in methods and _is_called(source, parent):
                    return False
            elif isinstance(each, ast.Name) and each.id in ("super", "locals", "vars", "eval", "exec"):
                return False
    return True


def _is_called(source: Source, node: ast.AST) -> bool:
    parent = source.parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _may_read(methods: dict[str, ast.FunctionDef], name: str, attr: str, seen: set[str]) -> bool:
    """Whether the method `name`, or one that it calls, may read or write the attribute, or hands the model on."""
    if name in seen:
        return False
    seen.add(name)
    attributes = [each for each in walk(methods[name]) if isinstance(each, ast.Attribute)]
    own = [each for each in attributes if dotted(each.value) == "self"]
    uses = [each for each in walk(methods[name]) if isinstance(each, ast.Name) and each.id == "self"]
    if len(uses) > len(own) or any(each.attr == attr for each in own):
        return True
    return any(each.attr in methods and _may_read(methods, each.attr, attr, seen) for each in own)


def _kept(
    source: Source, write: _Write, between: Sequence[ast.stmt], taken: set[str]
) -> tuple[str, list[Replacement]] | None:
    """The name that has what is written until then, and what changes for it; None where the line cannot go."""
    plain = isinstance(write.value, ast.Name) and write.value.id not in bound(list(between))
    if source.comments_between(source.start(write.statement), source.end(write.statement)):
        return None
    swaps: list[Replacement] = []
    if plain and isinstance(write.value, ast.Name):
        name = write.value.id
        gone = source.without(write.statement)
        if gone is None:
            return None
        swaps.append(gone)
    else:
        name = fresh(write.attr.lstrip("_") or "value", taken)
        start, end = source.start(write.value), source.end(write.value)
        several = source.newline in source.text[start:end] and isinstance(write.statement, ast.Expr)
        swaps.append(
            Replacement(source.start(write.statement), start, f"{name} = (" if several else f"{name} = ")
        )
        if isinstance(write.statement, ast.Expr):
            swaps.append(Replacement(end, source.end(write.statement), ")" if several else ""))
    swaps += [
        source.swap(each, name)
        for statement in between
        for each in walk(statement)
        if isinstance(each, ast.Attribute) and dotted(each) == f"self.{write.attr}"
    ]
    return name, swaps
