"""New names: what fixes that are applied at once bind in one function.

Each fix was made for the text as it is, and has chosen names that were free there: two of them may have chosen the same.
Python would take that, as long as neither reads its name behind the other; a person would call the second one otherwise.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from exportlens.finding import Edit, Finding, Position
from exportlens.rewriting.code.names import fresh
from exportlens.shared_edits import made_once
from exportlens.source.document import Document
from exportlens.source.positions import Lines

_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"_\d+$")
_BOUND = re.compile(
    r"^[ \t]*(?:def (?P<function>\w+)\(|(?P<targets>\w+(?:, \w+)*) = |for (?P<items>\w+(?:, \w+)*) in )",
    re.MULTILINE,
)


def told_apart(path: Path, text: str, findings: Sequence[Finding]) -> list[Edit]:
    """The edits of the fixes of `findings`, of which no two bind one new name in one function of `text`."""
    fixes = [finding.fix.edits for finding in findings if finding.fix]
    names = [name for edits in fixes for name in set().union(*(_bound(each.content) for each in edits))]
    if len(names) == len(set(names)):
        return made_once(edit for edits in fixes for edit in edits)
    spans = _functions(path, text)
    lines = Lines(text)
    taken: dict[int, set[str]] = {}
    result: list[Edit] = []
    for edits in fixes:
        places = {_function_of(edit, spans) for edit in edits}
        place = places.pop() if len(places) == 1 else None
        if place is None:
            result += edits
            continue
        first, last = spans[place]
        body = text[lines.offset(Position(first, 0)) : lines.offset(Position(last, 0))]
        words = set(_WORD.findall(body))
        new = taken.setdefault(place, set())
        bound = set().union(*(_bound(edit.content) for edit in edits)) - words
        free = words | new | bound
        renamed = {
            name: fresh(_NUMBER.sub("", name), free)
            for name in sorted(bound & new)
            if _may_rename(name, edits)
        }
        new |= bound | set(renamed.values())
        result += [replace(edit, content=_with(edit.content, renamed)) for edit in edits]
    return made_once(result)


def _bound(content: str) -> set[str]:
    found: set[str] = set()
    for match in _BOUND.finditer(content):
        found.update(_WORD.findall(match["function"] or match["targets"] or match["items"]))
    return found


def _may_rename(name: str, edits: Iterable[Edit]) -> bool:
    """Whether `name` is a variable wherever it occurs: not an argument's keyword, nor an attribute."""
    other = re.compile(rf"\b{name}=(?!=)|\.{name}\b")
    return not any(other.search(edit.content) for edit in edits)


def _with(content: str, renamed: dict[str, str]) -> str:
    return _WORD.sub(lambda word: renamed.get(word[0], word[0]), content)


@functools.lru_cache(maxsize=4)
def _functions(path: Path, text: str) -> tuple[tuple[int, int], ...]:
    """The lines (from, and up to) of the functions that are in no other one: an editor asks about one text many times."""
    return tuple(_outermost(Document.parse(path, text)))


def _outermost(document: Document) -> Iterator[tuple[int, int]]:
    for placed in document.placed:
        waiting: list[ast.AST] = list(placed.chunk.body)
        while waiting:
            node = waiting.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield (
                    placed.first_line + node.lineno - 1,
                    placed.first_line + (node.end_lineno or node.lineno),
                )
            elif isinstance(node, ast.stmt):
                waiting += ast.iter_child_nodes(node)


def _function_of(edit: Edit, spans: Sequence[tuple[int, int]]) -> int | None:
    line = edit.range.start.line
    return next((index for index, (first, last) in enumerate(spans) if first <= line < last), None)
