"""A `while` whose test binds a name: the name is bound before the loop and at the end of each round.

while (gap := error(x)) > 1e-3:        gap = error(x)
    x = step(x, gap)              ->   while gap > 1e-3:
                                           x = step(x, gap)
                                           gap = error(x)
"""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.loops.continues import without_continue
from exportlens.rewriting.memory.effects import repeatable
from exportlens.source.walking import walk

# What may not compute all of its parts, or computes them several times.
_UNSURE = (ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_before(source: Source, loop: ast.While, kinds: Kinds) -> tuple[Source, ast.While, Kinds] | None:
    """The text in which the test of `loop` binds nothing, the loop of it and the kinds just before that; None where it binds
    nothing anyway. Raises Refused where the test may not bind the name in each round, or does more."""
    names = [each for each in walk(loop.test) if isinstance(each, ast.NamedExpr)]
    if not names:
        return None
    asked = _asked_in_body(source, loop, kinds)
    if asked is not None:
        return asked
    name = names[0]
    if len(names) > 1 or _may_not_run(source, name, loop):
        raise Refused(
            f"the loop's condition binds `{names[-1].target.id}` on some ways only: bind it in the body"
        )
    if not _is_first(loop.test, name, kinds):
        raise Refused(
            f"the loop's condition does more before it binds `{name.target.id}`: bind it in the body"
        )
    if not all(map(source.begins_line, (loop, *loop.body))):
        raise Refused("the loop is written on one line")
    if "continues" in exits(loop.body):
        changed = without_continue(source, loop)
        if changed is None or not isinstance(changed[1], ast.While):
            raise Refused("the loop continues before its end, and its condition binds a name")
        return bound_before(changed[0], changed[1], kinds)
    line = f"{name.target.id} = {source.of(name.value)}"
    nl, start, end = source.newline, source.start(loop), source.span(loop.body)[1]
    head = f"{line}{nl}{source.indent_of(loop)}"
    outer_start, outer_end = source.start(name), source.end(name)
    if source.text[outer_start - 1] == "(" and source.text[outer_end : outer_end + 1] == ")":
        outer_start, outer_end = outer_start - 1, outer_end + 1
    spaced = " " if source.text[:outer_start].endswith("while") else ""
    swaps = [
        Replacement(start, start, head),
        Replacement(outer_start, outer_end, spaced + name.target.id),
        Replacement(end, end, f"{nl}{source.indent_of(loop.body[0])}{line}"),
    ]
    changed_source = Source(replaced(source.text, swaps))
    begin = start + len(head)
    same = next(
        each
        for each in walk(changed_source.tree)
        if isinstance(each, ast.While) and changed_source.start(each) == begin
    )
    after = kinds.copy()
    block, index = changed_source.block_of(same)
    after.run(block[index - 1 : index])
    return changed_source, same, after


def _asked_in_body(source: Source, loop: ast.While, kinds: Kinds) -> tuple[Source, ast.While, Kinds] | None:
    """`bound_before` for a test that binds a name where its first parts hold; the others leave the loop then:

    while changed.any() and (i := i + 1) < n:        while changed.any():
        x = step(x)                            ->        i = i + 1
                                                         if not (i < n):
                                                             break
                                                         x = step(x)
    """
    test = loop.test
    if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)) or loop.orelse:
        return None
    binding = [at for at, each in enumerate(test.values) if _binds(each)]
    if len(binding) != 1 or binding[0] == 0:
        return None
    first = test.values[binding[0]]
    name = next(each for each in walk(first) if isinstance(each, ast.NamedExpr))
    within = source.parents[name] if name is not first else None
    plain = name is first or (isinstance(within, ast.Compare) and within is first and within.left is name)
    if not plain or sum(isinstance(each, ast.NamedExpr) for each in walk(first)) > 1:
        return None
    if not all(map(source.begins_line, (loop, *loop.body))):
        return None
    begin, nl, inner = source.start(loop), source.newline, source.indent_of(loop.body[0])
    texts = [_alone(source, each) for each in test.values]
    asked = (
        name.target.id
        if within is None
        else f"{name.target.id}{source.text[_end(source, name) : source.end(first)]}"
    )
    rest = " and ".join([asked, *texts[binding[0] + 1 :]])
    lines = [
        f"{inner}{name.target.id} = {_alone(source, name.value)}",
        f"{inner}if not ({rest}):",
        f"{inner}{source.indent_unit()}break",
        "",
    ]
    body = source.span(loop.body)[0]
    swaps = [
        source.swap(test, " and ".join(texts[: binding[0]])),
        Replacement(body, body, nl.join(lines)),
    ]
    changed = Source(replaced(source.text, swaps))
    same = (each for each in walk(changed.tree) if isinstance(each, ast.While))
    found = next(each for each in same if changed.start(each) == begin)
    return changed, found, kinds


def _binds(node: ast.AST) -> bool:
    return any(isinstance(each, ast.NamedExpr) for each in walk(node))


def _end(source: Source, name: ast.NamedExpr) -> int:
    """Where what follows the brackets around `name` begins."""
    return source.text.index(")", source.end(name)) + 1


def _alone(source: Source, node: ast.expr) -> str:
    """The text of `node`, in brackets where it binds less than `and`."""
    text = source.of(node)
    loose = isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr))
    return f"({text})" if loose else text


def _may_not_run(source: Source, name: ast.NamedExpr, loop: ast.While) -> bool:
    """Whether the test may come out without binding the name."""
    inner: ast.AST = name
    for outer in source.ancestors(name):
        if outer is loop:
            return False
        if isinstance(outer, _UNSURE):
            return True
        if isinstance(outer, ast.BoolOp) and inner is not outer.values[0]:
            return True
        if isinstance(outer, ast.Compare) and inner not in (outer.left, outer.comparators[0]):
            return True
        inner = outer
    return True


def _is_first(test: ast.expr, name: ast.NamedExpr, kinds: Kinds) -> bool:
    """Whether what is computed beside the name may as well be computed after it: it has no effect, and does not read it."""
    inside = {id(each) for each in walk(name)}
    for each in walk(test):
        if id(each) in inside:
            continue
        if (
            isinstance(each, ast.Call)
            and not repeatable(each, kinds)
            and not any(one is name for one in walk(each))
        ):
            return False
        if isinstance(each, ast.Name) and each.id == name.target.id:
            before = (each.lineno, each.col_offset) < (name.lineno, name.col_offset)
            if before:
                return False
    return True
