"""An option that an arm asks of the configuration becomes a branch of Python's around the branch on tensor data.

`if t: a(); if self.option: b()` is `if self.option:` with `if t: a(); b()` in it, and `if t: a()` otherwise: what only one of
the options has (an attribute, a tensor where None stands else) is no business of the other's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, dotted, is_none, registers_buffer
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import loaded
from exportlens.source.walking import walk

_READ = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.expr_context)
_BINDING = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_SIGNS = (ast.cmpop, ast.boolop, ast.unaryop)


def option_outside(
    source: Source, node: ast.If, kinds: Kinds, torch: str
) -> Iterator[tuple[Source, ast.If, Kinds]]:
    """The text where the first option that the body of `node` asks stands around it, with the branch that is left where the
    option does not hold, then the one where it does, and the kinds there; nothing where there is no such option."""
    function = source.enclosing_function(node)
    if function is None or not source.begins_line(node) or source.text.startswith("elif", source.start(node)):
        return
    asked = _asked(source, node, kinds, torch)
    if asked is None:
        return
    changed, begin = _around(source, node, asked)
    test = ast.unparse(node.test)
    found = sorted(
        (
            each
            for each in walk(changed.tree)
            if isinstance(each, ast.If)
            and ast.unparse(each.test) == test
            and isinstance(changed.parents[each], ast.If)
            and changed.start(changed.parents[each]) == begin
        ),
        key=changed.start,
    )
    if len(found) == 2:
        yield changed, found[1], _where_not(asked, kinds)
        yield changed, found[0], _where(asked, function, source, kinds)


def held_again(source: Source, before: Source, node: ast.If) -> ast.If | None:
    """The branch `node` of `before`, which its option holds, in the new text `source`, where all behind it was rewritten."""
    option = before.parents[node]
    assert isinstance(option, ast.If)
    found = [
        each
        for each in walk(source.tree)
        if isinstance(each, ast.If) and ast.unparse(each.test) == ast.unparse(option.test) and each.orelse
    ]
    # What stands before it may have got longer.
    nearest = min(found, key=lambda each: abs(source.start(each) - before.start(option)), default=None)
    branches = [each for each in nearest.body if isinstance(each, ast.If)] if nearest else []
    return branches[0] if len(branches) == 1 else None


def binds_alike(before: Source, after: Source, name: str) -> bool:
    """Whether the same statements bind `name` in both texts."""
    first, second = (
        {
            ast.unparse(each)
            for each in walk(source.tree)
            if isinstance(each, _BINDING) and name in bound([each])
        }
        for source in (before, after)
    )
    return first == second


def leaves_outside(before: str, after: str, start: int, end: int) -> bool:
    """Whether `after` is `before` with nothing changed outside of `start` to `end`, but for parts of lines that got names: what
    was changed there for the one side of the option would be changed twice."""
    if not after.endswith(before[end:]):
        return False
    lines = after.splitlines()
    for line in before[:start].splitlines()[:-1]:
        if lines[:1] == [line]:
            lines = lines[1:]
            continue
        named = re.fullmatch(r"\s*(\w+) = (.+)", lines[0]) if len(lines) > 1 else None
        if (
            named is None
            or re.search(rf"\b{named[1]}\b", before)
            or line != lines[1].replace(named[1], named[2])
        ):
            return False
        lines = lines[2:]
    return True


def _asked(source: Source, node: ast.If, kinds: Kinds, torch: str) -> ast.If | None:
    """The first statement of the body that asks an option, where asking it before the branch gives the same."""
    predicates = Predicates(source, kinds, torch)
    for index, each in enumerate(node.body):
        if not isinstance(each, ast.If) or not source.begins_line(each):
            continue
        before = [ast.Expr(node.test), *node.body[:index]]
        names = {one.id for one in walk(each.test) if isinstance(one, ast.Name)}
        attributes = {one.attr for one in walk(each.test) if isinstance(one, ast.Attribute)}
        if (
            all(isinstance(one, (*_READ, *_SIGNS)) for one in ast.walk(each.test))
            and exits([each]) == {"falls"}
            and not predicates.from_data(each.test)
            and not names & set(bound(before))
            and not _sets(source, node, before, attributes)
        ):
            return each
    return None


def _sets(source: Source, node: ast.If, statements: list[ast.stmt], attributes: set[str]) -> bool:
    """Whether `statements` of `node`, or the methods of its class that they may call, set one of `attributes`."""
    owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)} if owner else {}
    calls = {dotted(each.func) for one in statements for each in walk(one) if isinstance(each, ast.Call)}
    asked: list[ast.AST] = list(statements)
    if any((each or "").removeprefix("self.") in methods for each in calls):
        asked += [each for name, each in methods.items() if name != "__init__"]
    return any(
        isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and each.attr in attributes
        for one in asked
        for each in walk(one)
    )


def _around(source: Source, node: ast.If, asked: ast.If) -> tuple[Source, int]:
    """The text with the option outside, and where it begins."""
    nl, indent = source.newline, source.indent_of(node)
    inner = indent + source.indent_unit()
    start = source.start(node)
    sides = []
    for statements in (asked.body, asked.orelse):
        variant = Source(replaced(source.text, [_in_place_of(source, node, asked, statements)]))
        same = variant.branch_at(start)
        sides.append(inner + variant.shifted(start, variant.span([same])[1], indent, inner))
    text = nl.join([f"if {source.of(asked.test)}:", sides[0], f"{indent}else:", sides[1]])
    return Source(replaced(source.text, [Replacement(start, source.span([node])[1], text)])), start


def _in_place_of(source: Source, node: ast.If, asked: ast.If, statements: list[ast.stmt]) -> Replacement:
    indent = source.indent_of(asked)
    start, end = source.start(asked), source.span([asked])[1]
    if len(statements) == 1 and source.text.startswith("elif", source.start(statements[0])):
        begin = source.start(statements[0])
        return Replacement(start, end, source.text[begin + 2 : end])
    if statements:
        return Replacement(start, end, source.block(statements, indent)[len(indent) :])
    if len(node.body) == 1:
        return Replacement(start, end, "pass")
    # The whole line goes.
    return Replacement(start - len(indent), min(end + len(source.newline), len(source.text)), "")


def _where_not(asked: ast.If, kinds: Kinds) -> Kinds:
    """The kinds where the option does not hold: the name that is asked whether it is not None is None."""
    now, test = kinds.copy(), asked.test
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or len(test.ops) != 1:
        return now
    if isinstance(test.ops[0], ast.IsNot) and is_none(test.comparators[0]):
        now.names[test.left.id] = Kind("none")
    return now


def _where(asked: ast.If, function: Function, source: Source, kinds: Kinds) -> Kinds:
    """The kinds where the option holds: what is not None there, and is computed with as tensors are, is a tensor, and so is
    what the constructor registers."""
    now = kinds.copy()
    later = kinds.copy()
    later.run(function.body)
    for each in walk(asked.test):
        if (
            isinstance(each, ast.Compare)
            and isinstance(each.left, ast.Name)
            and isinstance(each.ops[0], ast.IsNot)
            and kinds.of(each.left).what in ("none", "unknown")
            and _is_like_a_tensor(each.left.id, function, later)
        ):
            name = each.left.id
            now.names[name] = Kind("tensor", None, None, frozenset({name}))
    owner = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    for statement in asked.body:
        for each in walk(statement):
            if not isinstance(each, ast.Attribute):
                continue
            path = dotted(each) or ""
            own = owner is not None and path.startswith("self.") and registers_buffer(owner, path[5:])
            if own and kinds.of(loaded(each)).what == "unknown":
                now.names[path] = Kind("tensor", None, None, frozenset({path}))
    return now


def _is_like_a_tensor(name: str, function: Function, kinds: Kinds) -> bool:
    """Whether a tensor picks from `name` somewhere in the function, or is computed with it."""
    for each in walk(function):
        if isinstance(each, ast.Subscript) and dotted(each.value) == name:
            if kinds.of(each.slice).what == "tensor":
                return True
        elif isinstance(each, ast.BinOp) and name in (dotted(each.left), dotted(each.right)):
            other = each.right if dotted(each.left) == name else each.left
            if kinds.of(other).what == "tensor":
                return True
    return False
