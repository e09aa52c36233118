"""Loops that fill a list until data says stop, as loops that go on and do nothing more.

for i in order:                             stopped = torch.zeros((), dtype=torch.bool)
    if score[i] < t:                        for i in order:
        break                         ->        if not stopped:
    keep.append(i)                                  if score[i] < t:
                                                        stopped = torch.ones_like(stopped)
                                                    else:
                                                        keep.append(i)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import append_of, bound, every_name, fresh
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.lists.marked_uses import is_bound_by_loop
from exportlens.source.walking import walk

_LEAVING = frozenset({"breaks", "continues"})


def without_breaks(source: Source, node: ast.If, torch: str) -> tuple[Source, ast.If] | None:
    """The text where the loop around `node` that appends to a list has no `break`, and what its rounds ask first; None where it has
    none, or what it binds last is read behind it."""
    loop = next((each for each in source.ancestors(node) if isinstance(each, (ast.For, ast.While))), None)
    function = source.enclosing_function(node)
    if not isinstance(loop, ast.For) or function is None or "breaks" not in exits(loop.body):
        return None
    appends = [each for each in walk(loop) if isinstance(each, ast.Expr) and append_of(each) is not None]
    if loop.orelse or exits(loop.body) & {"returns"} or not appends or not source.begins_line(loop):
        return None
    # Rounds that do nothing more bind what the loop goes through.
    ends = {
        each.id
        for each in walk(function)
        if isinstance(each, ast.Name)
        and isinstance(each.ctx, ast.Load)
        and source.start(each) > source.end(loop)
        and not is_bound_by_loop(source, each)
    }
    if ends & set(bound(loop.target)):
        return None
    flag = fresh("stopped", every_name(source.tree))
    inner = source.indent_of(loop.body[0])
    lines = _flagged(source, loop.body, inner + source.indent_unit(), flag, torch)
    if lines is None or not all(map(source.begins_line, loop.body)):
        return None
    nl, begin = source.newline, source.start(loop)
    start = f"{flag} = {torch}.zeros((), dtype={torch}.bool){nl}{source.indent_of(loop)}"
    first, last = source.span(loop.body)
    body = nl.join([f"{inner}if not {flag}:", *lines])
    swaps = [Replacement(begin, begin, start), Replacement(source.line_start(first), last, body)]
    changed = Source(replaced(source.text, swaps))
    found = (each for each in walk(changed.tree) if isinstance(each, ast.For))
    again = next(each for each in found if changed.start(each) == begin + len(start))
    question = again.body[0]
    return (changed, question) if isinstance(question, ast.If) else None


def _flagged(
    source: Source, statements: Sequence[ast.stmt], indent: str, flag: str, torch: str
) -> list[str] | None:
    """The lines of `statements` without `break` and `continue` of the loop; None where they leave it in another way."""
    lines: list[str] = []
    plain: list[ast.stmt] = []
    for at, each in enumerate(statements):
        if not exits([each]) & _LEAVING:
            plain.append(each)
            continue
        lines += [source.block(plain, indent)] if plain else []
        if isinstance(each, ast.Break):
            return [*lines, f"{indent}{flag} = {torch}.ones_like({flag})"]
        if isinstance(each, ast.Continue):
            return lines or [f"{indent}pass"]
        if not isinstance(each, ast.If):
            return None
        body_falls, other_falls = ("falls" in exits(block) for block in (each.body, each.orelse))
        # What follows is for the way that goes on, and asks where that may have stopped as well.
        going_on = [block for block in (each.body, each.orelse) if "falls" in exits(block)]
        if any("continues" in exits(block) for block in going_on):
            return None
        asks = any("breaks" in exits(block) for block in going_on)
        unit, rest = source.indent_unit(), statements[at + 1 :] if going_on else []
        inside = indent + unit
        body = _flagged(source, each.body, inside, flag, torch)
        other = _flagged(source, each.orelse, inside, flag, torch) if each.orelse else []
        deeper = (unit if asks else "") + ("" if body_falls and other_falls else unit)
        behind = _flagged(source, rest, indent + deeper, flag, torch) if rest else []
        if body is None or other is None or behind is None:
            return None
        if behind and asks:
            behind.insert(0, f"{indent}{deeper.removesuffix(unit)}if not {flag}:")
        notes = source.comments_between(source.span([each])[0], source.span(each.body)[0])
        lines += [indent + note for note in notes]
        test = source.of(each.test)
        if not body_falls and body == [f"{inside}pass"] and (other or behind):
            return [*lines, f"{indent}if not ({test}):", *other, *behind]
        lines += [f"{indent}if {test}:", *body]
        if body_falls and other_falls:
            return [*lines, *([f"{indent}else:", *other] if other else []), *behind]
        if body_falls:
            return [*lines, *behind, f"{indent}else:", *other]
        return [*lines, f"{indent}else:", *other, *behind] if other or behind else lines
    return [*lines, source.block(plain, indent)] if plain else lines
