"""What the arms of a branch print, log or count for others, told before it and outside of tracing."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from exportlens.rewriting.checks.left_undone import refuse_lasting
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import bound, reads
from exportlens.rewriting.code.text import Replacement, Source, read_again, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_kept_out, is_log, repeatable
from exportlens.rewriting.state.tallies import is_tally


def starts_line(source: Source, node: ast.If) -> bool:
    return source.begins_line(node) and not source.text.startswith("elif", source.start(node))


def told_outside(source: Source, node: ast.If, kinds: Kinds, torch: str) -> tuple[Source, ast.If] | None:
    """What an arm prints or logs of values from before the branch, or counts for others, comes before it, outside of tracing."""
    if not starts_line(source, node):
        return None
    found = list(_logs(source, node, [], kinds))
    if not found or any(text is None for _, text in found):
        return None
    indent = source.indent_of(node)
    inner = indent + source.indent_unit()
    lines: list[str] = []
    swaps: list[Replacement] = []
    for statement, condition in found:
        lines.append(f"if not {torch}.compiler.is_compiling() and {condition}:")
        lines.append(source.block([statement], inner))
        swaps.append(removed(source, statement))
    begin = source.start(node)
    text = source.newline.join(
        line if number % 2 else (indent if number else "") + line for number, line in enumerate(lines)
    )
    head = text + source.newline + indent
    return read_again(replaced(source.text, [*swaps, Replacement(begin, begin, head)]), begin + len(head))


def _logs(
    source: Source, node: ast.If, before: list[str], kinds: Kinds
) -> Iterator[tuple[ast.stmt, str | None]]:
    """The logs in the arms of `node` with the condition under which they are reached, None where they cannot move."""
    test = source.of(node.test)
    plain = isinstance(node.test, (ast.Compare, ast.Call, ast.Attribute, ast.Name, ast.Subscript))
    positive = test if plain else f"({test})"
    again = repeatable(node.test, kinds)
    sides = [(node.body, positive, False), (node.orelse, f"not {positive}", False)]
    if not before and not node.orelse and "falls" not in exits(node.body):
        # What follows an early return is the other arm: of that, what is counted for others.
        block, at = source.block_of(node)
        rest = list(itertools.takewhile(lambda each: exits([each]) == {"falls"}, block[at + 1 :]))
        sides.append((rest, f"not {positive}", True))
    for body, own, behind in sides:
        for index, statement in enumerate(body):
            if (
                isinstance(statement, ast.If)
                and is_kept_out(statement)
                and _only_counts(source, statement, kinds)
            ):
                earlier = [each for each in body[:index] if not _is_tally(source, each, kinds)]
                free = not reads(statement) & set(bound(earlier)) and not any(map(_may_write, earlier))
                yield statement, " and ".join([*before, own]) if again and free else None
                continue
            if behind and not isinstance(statement, (ast.AugAssign, ast.Assign)):
                continue
            if isinstance(statement, ast.Expr) and is_log(statement.value, kinds):
                earlier = body[:index]
                free = not reads(statement) & set(bound(earlier)) and not any(map(_may_write, earlier))
                refuse_lasting(source, statement, kinds)
                yield statement, " and ".join([*before, own]) if again and free else None
            elif isinstance(statement, ast.AugAssign) and is_tally(source, statement, kinds):
                yield statement, " and ".join([*before, own]) if again else None
            elif isinstance(statement, ast.Assign) and is_tally(source, statement, kinds):
                free = not reads(statement.value) & set(bound(body[:index]))
                yield statement, " and ".join([*before, own]) if again and free else None
            elif isinstance(statement, ast.If) and statement is body[0] and not is_kept_out(statement):
                yield from _logs(source, statement, [*before, own], kinds)


def _only_counts(source: Source, node: ast.If, kinds: Kinds) -> bool:
    """Whether `node` does nothing but count for others."""
    return not node.orelse and all(_is_tally(source, each, kinds) for each in node.body)


def _is_tally(source: Source, node: ast.stmt, kinds: Kinds) -> bool:
    return isinstance(node, (ast.AugAssign, ast.Assign)) and is_tally(source, node, kinds)


def _may_write(node: ast.stmt) -> bool:
    return isinstance(node, ast.AugAssign) or any(
        (isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store))
        or (isinstance(each, ast.Call) and getattr(each.func, "attr", "").endswith("_"))
        for each in ast.walk(node)
    )


def removed(source: Source, statement: ast.stmt) -> Replacement:
    block, _ = source.block_of(statement)
    start, end = source.span([statement])
    if len(block) == 1 or not source.begins_line(statement):
        return Replacement(source.start(statement), source.end(statement), "pass")
    line_end = source.text.find("\n", end)
    begin = source.text.rfind("\n", 0, start) + 1
    return Replacement(begin, line_end + 1 if line_end >= 0 else end, "")
