"""torch's "Suggested fixes" for dynamic shapes, made in the file's own Dims."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from exportlens.finding import Edit, Fix, Refusal
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.text import Replacement
from exportlens.source.parsing import parse_python

_SUGGESTED = re.compile(r"Suggested fixes:\n((?:[ \t]+\S.*(?:\n|$))+)")
_BOUNDS = ("min", "max")


@dataclass(frozen=True)
class _Declared:
    """One `Dim("name", ...)` of the document, and the variable that it is assigned to, if it is."""

    draft: Draft
    call: ast.Call
    variable: str | None
    order: int


def suggestions(words: str) -> dict[str, ast.expr]:
    """What torch suggests for each Dim by its name: another Dim, a number, or a Dim with other bounds."""
    found = _SUGGESTED.search(words)
    made: dict[str, ast.expr] = {}
    for line in found[1].splitlines() if found else ():
        try:
            statement = parse_python(line.strip()).body[0]
        except (SyntaxError, IndexError):
            continue
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            made[statement.targets[0].id] = statement.value
    return made


def apply_suggestions(words: str, context: RewriteContext) -> Fix | Refusal | None:
    """The document's Dims as torch suggests them; None where `words` suggest nothing."""
    wanted = suggestions(words)
    if not wanted:
        return None
    try:
        return tie_dims(wanted, context)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def tie_dims(wanted: dict[str, ast.expr], context: RewriteContext) -> Fix:
    """The document's Dims, each with the expression in `wanted` under its name. Raises Refused."""
    declared = {name: each for each in _declared(context) for name in [_name(each.call)]}
    added = {name: value for name, value in wanted.items() if name not in declared}
    known = {name: value for name, value in wanted.items() if name in declared}
    if not known:
        raise Refused(f"no Dim of this file is called {', '.join(map(repr, wanted))}")
    edits: list[Edit] = []
    before = min((declared[name] for name in known), key=lambda each: each.order)
    lines = [f"{name} = {_text(value, before, declared)}" for name, value in added.items()]
    if lines and before.variable is None:
        # What is written inside of the export call has no line before it: a Dim of the same name is the same Dim.
        known = {name: _Inlined(added).visit(value) for name, value in known.items()}
        lines = []
    for name, value in known.items():
        mine = declared[name]
        swaps = [mine.draft.source.swap(mine.call, _text(value, mine, declared))]
        if mine is before and lines:
            statement = mine.draft.source.enclosing_statement(mine.call)
            start = mine.draft.source.start(statement)
            gap = mine.draft.source.newline + mine.draft.source.indent_of(statement)
            swaps.append(Replacement(start, start, "".join(line + gap for line in lines)))
        edits += mine.draft.replace("", swaps, uses_torch=False).edits
    fix = before.draft.replace("", [], uses_torch=False)
    names = ", ".join(f"`{name}`" for name in known)
    return Fix(
        f"Declare {names} as the model needs {'it' if len(known) == 1 else 'them'}",
        tuple(edits),
        fix.applicability,
    )


class _Inlined(ast.NodeTransformer):
    """Puts the Dims in the places of their names."""

    def __init__(self, dims: dict[str, ast.expr]) -> None:
        self.dims = dims

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.dims.get(node.id, node)


def _declared(context: RewriteContext) -> Iterator[_Declared]:
    order = 0
    for placed in context.document.placed:
        if "Dim(" not in placed.chunk.text:
            continue
        draft = Draft.of_chunk(placed.chunk, context)
        for node in ast.walk(draft.source.tree):
            if isinstance(node, ast.Call) and _name(node) and ast.unparse(node.func).endswith("Dim"):
                parent = draft.source.parents.get(node)
                target = parent.targets[0] if isinstance(parent, ast.Assign) else None
                variable = target.id if isinstance(target, ast.Name) else None
                yield _Declared(draft, node, variable, order + node.lineno)
        order += len(placed.chunk.lines)


def _name(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _text(value: ast.expr, where: _Declared, declared: dict[str, _Declared]) -> str:
    """One suggestion in the words of the file, to stand where `where` stands."""
    if isinstance(value, ast.Call):
        return _bounded(value, where, declared.get(_name(value)))
    if isinstance(value, ast.Name):
        other = declared.get(value.id)
        if other is None:
            return value.id  # one of those that are added
        if other.variable is not None and other.order < where.order:
            return other.variable
        return other.draft.source.of(other.call)
    if isinstance(value, ast.BinOp):
        left, right = _text(value.left, where, declared), _text(value.right, where, declared)
        sign = {ast.Mult: "*", ast.Add: "+", ast.Sub: "-"}.get(type(value.op))
        if sign is None:
            raise Refused(f"`{ast.unparse(value)}` is no size that a Dim can be")
        return f"{left} {sign} {right}"
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        return str(value.value)
    raise Refused(f"`{ast.unparse(value)}` is no size that a Dim can be")


def _bounded(value: ast.Call, where: _Declared, old: _Declared | None) -> str:
    """A Dim with torch's bounds, and the file's own where torch names none."""
    bounds = {key.arg: key.value for key in (old.call.keywords if old else ()) if key.arg in _BOUNDS}
    # Where there is no end, torch writes `max=oo`.
    bounds |= {
        key.arg: key.value for key in value.keywords if key.arg in _BOUNDS and ast.unparse(key.value) != "oo"
    }
    callee = where.draft.source.of(where.call.func)
    parts = [f'"{_name(value)}"', *(f"{key}={ast.unparse(bounds[key])}" for key in _BOUNDS if key in bounds)]
    return f"{callee}({', '.join(parts)})"
