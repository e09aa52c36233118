"""A tensor that an attribute is bound to, written into the tensor that it holds: `self.state = new` as `self.state.copy_(new)`."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, fresh
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.kinds.kind import LOCAL, Kind
from exportlens.rewriting.memory.afterwards import afterwards
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.state.kept_values import kept_apart


def copied_text(
    draft: Draft, statement: ast.Assign, written: ast.Attribute, inside: list[Replacement]
) -> str:
    """What copies into `written`, a target of `statement`, alone or among others, where `inside` is replaced within the statement."""
    source = draft.source
    target = source.of(written)
    if written is statement.targets[0]:
        return f"{target}.copy_({source.of(statement.value, inside)})"
    name = fresh(written.attr.strip("_") or "state", draft.taken(source.tree))
    text = source.of(statement, [*inside, source.swap(written, name)])
    return f"{text}{source.newline}{source.indent_of(statement)}{target}.copy_({name})"


def refuse_written_later(draft: Draft, statement: ast.Assign, path: str) -> None:
    """Raise Refused where what the attribute is bound to is memory that is written in place later: a copy would not see that."""
    function = draft.source.enclosing_function(statement)
    if function is None:
        return
    now = kinds_before(function, statement, draft.kinds({}))
    shared = {each for each in now.of(statement.value).roots or () if not each.startswith(LOCAL)} - {path}
    if shared:
        written = shared & afterwards(draft.source, statement, function, now).in_tensors
        if written:
            raise Refused(f"`{path}` may share memory with `{min(written)}`, and one is written later")


def bound_elsewhere(draft: Draft, statement: ast.stmt, path: str) -> list[ast.Assign]:
    """The other statements that bind the attribute to a tensor which others may hold: what is written in place later would change
    that one, too. Raises Refused where one of them is not known to bind a tensor."""
    source, found = draft.source, []
    for each in ast.walk(source.tree):
        if (
            each is statement
            or not isinstance(each, ast.Assign)
            or [dotted(one) for one in each.targets] != [path]
        ):
            continue
        function = source.enclosing_function(each)
        if function is None or function.name == "__init__":
            continue
        kinds = draft.kinds({})
        given = function.args
        for one in [*given.posonlyargs, *given.args[1:], *given.kwonlyargs]:
            kinds.assign(ast.Name(one.arg, ast.Store()), Kind("tensor", roots=frozenset({one.arg})))
        kind = kinds_before(function, each, kinds).of(each.value)
        if kind.fresh or dotted(each.value) is None:
            continue
        if kind.what not in ("tensor", "unknown"):
            raise Refused(f"`{source.of(each)}` binds the attribute to what may be no tensor")
        found.append(each)
    return found


def written_by(statement: ast.stmt, attr: str) -> ast.Attribute | None:
    """The target that `statement` writes, alone or among others that are taken apart."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    found = [each for each in parts if isinstance(each, ast.Attribute) and each.attr == attr]
    return found[0] if len(found) == 1 else None


def copies(draft: Draft, statement: ast.stmt, path: str) -> list[Replacement]:
    """The copies that keep the old tensor for what else holds it. Raises Refused."""
    function = draft.source.enclosing_function(statement)
    return [] if function is None else kept_apart(draft.source, function, path, statement, draft.kinds({}))
