"""Applying fixes to text: no two that overlap in one round, in the newline style of the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from exportlens.finding import Applicability, Edit, Finding, Fix, Range
from exportlens.new_names import told_apart
from exportlens.shared_edits import is_shared
from exportlens.source.parsing import parse_python
from exportlens.source.positions import Lines
from exportlens.source.walking import walk

# What reads out the number that a branch chose, and returns it.
_GIVES = re.compile(r"^\s*return .*\.cond\(.*\.item\(\)$", re.MULTILINE)


# A number that a loop or branch has chosen, read out of its tensor behind it.
_READ_BACK = re.compile(r"^\s*(\w+) = \1\.item\(\)", re.MULTILINE)
_OPERATORS = ("cond(", "while_loop(", "scan(", "map(")


@dataclass(frozen=True, slots=True)
class Applied:
    """The text after one round, and the findings whose fixes are in it."""

    text: str
    findings: tuple[Finding, ...]


def applicable(fix: Fix | None, *, unsafe: bool) -> bool:
    """Whether `fix` may be applied: safe ones always, unsafe ones on request, display-only ones never."""
    if fix is None or fix.applicability is Applicability.DISPLAY_ONLY:
        return False
    return unsafe or fix.applicability is Applicability.SAFE


def compatible(path: Path, findings: Iterable[Finding]) -> list[Finding]:
    """Those of `findings` whose fixes can be applied together to `path`, first come first served.

    One that overlaps an earlier one is left out, also one that puts something directly to what that replaces, as `.clone()` to an
    expression; and so are those that also edit other files: they need all of their files at once.
    """
    taken: list[Edit] = []
    chosen: list[Finding] = []
    ordered = sorted(
        (f for f in findings if f.fix and f.fix.edits), key=lambda f: (min(_ranges(f.fix)), f.sort_key())
    )
    for finding in ordered:
        if finding.fix is None or any(edit.path not in (None, path) for edit in finding.fix.edits):
            continue
        edits = [edit for edit in finding.fix.edits if not is_shared(edit, taken)]
        if any(
            mine.range.overlaps(other.range) or _joins(mine, other) or _joins(other, mine)
            for mine in edits
            for other in taken
        ):
            continue
        taken += edits
        chosen.append(finding)
    return chosen


def _joins(edit: Edit, other: Edit) -> bool:
    """Whether `edit` puts something on the line of what `other` replaces, directly before or behind it."""
    at = edit.range.start
    if at != edit.range.end or other.range.start == other.range.end:
        return False
    before = at == other.range.start and not edit.content.rstrip(" \t").endswith("\n")
    behind = at == other.range.end and not edit.content.startswith(("\n", "\r"))
    return before or behind


def apply_fixes(path: Path, text: str, findings: Iterable[Finding]) -> Applied:
    """Apply the fixes of `findings` to the text of `path`, as many as go together."""
    chosen = compatible(path, _without_inner(text, findings))
    chosen = _without_callers(text, chosen) or chosen
    chosen = _without_readers(text, chosen)
    return Applied(apply_edits(text, told_apart(path, text, chosen)), tuple(chosen))


def _without_inner(text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Those of `findings` but for branches inside of a branch whose fix replaces the same lines: that one rewrites them as well."""
    fixed = [each for each in findings if each.fix and each.fix.edits]
    if len(fixed) < 2:
        return fixed
    try:
        branches = [each for each in walk(parse_python(text)) if isinstance(each, ast.If)]
    except SyntaxError:
        return fixed
    asked = {
        line: each
        for each in reversed(branches)
        for line in range(each.test.lineno, _last_line(each.test) + 1)
    }
    # The branches that have a fix, each with the lines of all in it.
    outer = [(each, branch) for each in fixed if (branch := asked.get(each.range.start.line + 1)) is not None]

    def is_inside(inner: Finding) -> bool:
        own = asked.get(inner.range.start.line + 1)
        return own is not None and any(
            branch is not own
            and branch.lineno <= own.lineno
            and _last_line(own) <= _last_line(branch)
            and _overlap(inner, each)
            for each, branch in outer
        )

    return [each for each in fixed if not is_inside(each)]


def _last_line(node: ast.expr | ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _overlap(one: Finding, other: Finding) -> bool:
    return any(
        mine.range.overlaps(theirs.range)
        for mine in (one.fix.edits if one.fix else ())
        for theirs in (other.fix.edits if other.fix else ())
    )


def _without_callers(text: str, findings: list[Finding]) -> list[Finding]:
    """Those of `findings` that are in no function which calls one that a fix makes give a number from data: that number is
    known as one in the next round only."""
    given = [
        each for each in findings if each.fix and any(_GIVES.search(edit.content) for edit in each.fix.edits)
    ]
    if not given:
        return findings
    try:
        functions = [each for each in walk(parse_python(text)) if isinstance(each, ast.FunctionDef)]
    except SyntaxError:
        return findings
    names = {one.name for each in given for one in [_function_at(functions, each.range)] if one is not None}

    def calls(function: ast.FunctionDef | None) -> bool:
        called = {
            getattr(each.func, "attr", getattr(each.func, "id", ""))
            for each in (walk(function) if function is not None else ())
            if isinstance(each, ast.Call)
        }
        return bool(called & names)

    return [each for each in findings if not calls(_function_at(functions, each.range))]


def _without_readers(text: str, findings: list[Finding]) -> list[Finding]:
    """Those of `findings` whose fix puts into an operator's function no number that the fix of an earlier one reads back: torch.cond
    takes in no such number, which is known as one in the next round only."""
    if not any(_READ_BACK.search(edit.content) for each in findings if each.fix for edit in each.fix.edits):
        return findings
    try:
        functions = [each for each in walk(parse_python(text)) if isinstance(each, ast.FunctionDef)]
    except SyntaxError:
        return findings
    kept: list[Finding] = []
    numbers: dict[ast.FunctionDef | None, set[str]] = {}
    for each in sorted(findings, key=lambda each: min(_ranges(each.fix), default=each.range)):
        known = numbers.setdefault(_function_at(functions, each.range), set())
        contents = [edit.content for edit in each.fix.edits] if each.fix else []
        traced = any(word in content for content in contents for word in _OPERATORS)
        if traced and any(re.search(rf"\b{name}\b", content) for content in contents for name in known):
            continue
        kept.append(each)
        known.update(name for content in contents for name in _READ_BACK.findall(content))
    return kept


def _function_at(functions: list[ast.FunctionDef], place: Range) -> ast.FunctionDef | None:
    """The innermost of `functions` around `place`."""
    line = place.start.line + 1
    around = [each for each in functions if each.lineno <= line <= (each.end_lineno or each.lineno)]
    return max(around, key=lambda each: each.lineno, default=None)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` with edits that do not overlap; insertions at one place keep their order."""
    lines = Lines(text)
    newline = newline_style(text)
    result = text
    ordered = sorted(enumerate(edits), key=lambda each: (each[1].range, each[0]), reverse=True)
    for _, edit in ordered:
        content = edit.content.replace("\r\n", "\n").replace("\n", newline)
        result = result[: lines.offset(edit.range.start)] + content + result[lines.offset(edit.range.end) :]
    return result


def newline_style(text: str) -> str:
    """The line end that most lines of `text` have."""
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda end: counts[end])


def _ranges(fix: Fix | None) -> list[Range]:
    return [edit.range for edit in fix.edits] if fix else []
