"""A document: one file's text, cut into chunks that are parsed once per content."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from exportlens.finding import Position, Range
from exportlens.source.lexing import (
    count_newlines,
    has_lone_carriage_return,
    logical_lines,
    split_lines,
    statement_starts,
)
from exportlens.source.parsing import parse_python
from exportlens.source.positions import Lines

# `ast.parse` warns of invalid escapes in the code that it reads; those warnings are about the user's code,
# not ours to print.
_FILE_NAME = "<exportlens>"
warnings.filterwarnings("ignore", module=re.escape(_FILE_NAME))

_SURROGATE = re.compile("[\ud800-\udfff]")
_DECORATOR = re.compile(r"(?:[\f\ufeff]|\\(?:\r\n|\n|\r))*@")
_TRAILER = re.compile(r"(?:[ \t\f]*|\#.*)(?:\r\n|\n|\r|\Z)")


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Why a chunk could not be parsed; `line` and `column` (in code points) count from 0 within the chunk."""

    message: str
    line: int
    column: int


@dataclass(frozen=True, eq=False)
class Chunk:
    """One top-level statement (decorators included), parsed alone.

    `body` holds its statements with line numbers counted from the chunk's own first line (1-based, as `ast`
    does),
    so that a chunk that only moved keeps its tree. `key` is the hash of `text`. No two chunks of a document
    are one object,
    even where their texts are equal.
    """

    text: str
    key: str
    body: tuple[ast.stmt, ...]
    problem: SyntaxProblem | None = None
    lines: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A chunk, the 0-based line of the document on which it starts, and the offset of that line.

    The blank and comment lines after a chunk belong to none: writing there costs nothing.
    """

    chunk: Chunk
    first_line: int
    start: int = 0


@dataclass(frozen=True, eq=False)
class Document:
    """A file's text and its chunks. Immutable: an edit makes a new document that shares untouched chunks."""

    path: Path
    text: str
    placed: tuple[PlacedChunk, ...]
    version: int | None = None

    @classmethod
    def parse(cls, path: Path, text: str, version: int | None = None) -> Document:
        """Cut and parse `text`. Never raises on bad syntax: the chunk at fault carries a `problem`."""
        return cls(path, text, tuple(_cut(_readable(text), {})), version)

    def edited(self, text: str, version: int | None = None) -> Document:
        """The document with the new `text`: equal to parsing it anew, but chunks whose text stayed keep their
        identity.

        Costs the parse of the chunks that the edit touched, and a comparison of the others' text.
        """
        old, new = _readable(self.text), _readable(text)
        kept = self._untouched_before(old, new)
        first_after = self._untouched_after(old, new, kept)
        moved = {
            self.placed[index].start + len(new) - len(old): index
            for index in range(first_after, len(self.placed))
        }
        result = list(self.placed[:kept])
        spare = _by_key(self.placed[kept:first_after])
        start = self.placed[kept] if kept else PlacedChunk(_NOTHING, 0, 0)
        for placed in _cut(new, spare, start.start, start.first_line):
            if (index := moved.get(placed.start)) is not None:
                result += _shifted(self.placed[index:], placed)
                break
            result.append(placed)
        return Document(self.path, text, tuple(result), version)

    def chunk_at(self, line: int) -> PlacedChunk | None:
        """The chunk that holds the 0-based `line`, None between chunks."""
        for placed in self.placed:
            if placed.first_line <= line < placed.first_line + len(placed.chunk.lines):
                return placed
        return None

    def problems(self) -> Iterator[tuple[SyntaxProblem, Position]]:
        """What could not be parsed, with its position in this document."""
        for placed in self.placed:
            if problem := placed.chunk.problem:
                yield problem, Position(placed.first_line + problem.line, problem.column)

    def range_of(self, chunk: Chunk, node: ast.AST) -> Range:
        """Where `node` of `chunk` stands in this document; columns in code points."""
        first = self._first_lines[id(chunk)]
        return Range(
            Position(first + node.lineno - 1, column_of(chunk, node.lineno, node.col_offset)),  # type: ignore[attr-defined]
            Position(first + node.end_lineno - 1, column_of(chunk, node.end_lineno, node.end_col_offset)),  # type: ignore[attr-defined]
        )

    def holds(self, chunk: Chunk) -> bool:
        """Whether `chunk` is one of this version's chunks."""
        return id(chunk) in self._first_lines

    @functools.cached_property
    def lines(self) -> Lines:
        """Lines and offsets of the text."""
        return Lines(self.text)

    @functools.cached_property
    def _first_lines(self) -> dict[int, int]:
        return {id(placed.chunk): placed.first_line for placed in self.placed}

    def _untouched_before(self, old: str, new: str) -> int:
        """How many chunks at the beginning the edit cannot have changed.

        A sound chunk depends on nothing after it but the line at which the next one begins, so the last one
        before the edit is cut
        again; a broken one might end elsewhere now, so that all is cut again from the first broken one.
        """
        same = 0
        position = 0
        for index in range(len(self.placed) - 1):
            end = self.placed[index + 1].start
            if self.placed[index].chunk.problem or old[position:end] != new[position:end]:
                break
            same, position = index + 1, end
        return max(0, same - 1)

    def _untouched_after(self, old: str, new: str, kept: int) -> int:
        """The first chunk from which on the text is the same to the very end; the number of chunks where
        there is none.
        """
        first, end = len(self.placed), len(old)
        shift = len(new) - len(old)
        for index in range(len(self.placed) - 1, kept - 1, -1):
            start = self.placed[index].start
            if start + shift < 0 or old[start:end] != new[start + shift : end + shift]:
                break
            first, end = index, start
        return first


def column_of(chunk: Chunk, line: int, utf8_column: int) -> int:
    """The code-point column for `ast`'s 1-based line and UTF-8 byte column."""
    text = chunk.lines[line - 1]
    if text.isascii():
        return utf8_column
    return len(text.encode()[:utf8_column].decode(errors="replace"))


def parse_chunk(text: str) -> Chunk:
    """Parse one chunk's text."""
    text = _readable(text)
    try:
        body = tuple(parse_python(text, _FILE_NAME).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _broken(text, error)
    return Chunk(text, _key(text), body, None, tuple(split_lines(text)))


def _cut(text: str, spare: dict[str, list[Chunk]], position: int = 0, line: int = 0) -> Iterator[PlacedChunk]:
    """Cut `text` from `position` (on `line`) on, taking chunks from `spare` where one has the very text.

    A line that begins at column 0 is where a statement starts, unless it lies within a string, brackets or a
    continued line. Which of the
    two it is shows when the text before it is parsed: a statement that is cut short never parses. Only then
    the lexer is asked.
    """
    after_cr = has_lone_carriage_return(text)
    starts = _Starts(text, position, after_cr)
    counted = position
    for start in starts:
        line += count_newlines(text, counted, start)
        counted = start
        end = starts.peek()
        chunk = _take(text[start:end], spare)
        if chunk.problem and end < len(text):
            longer = _logical_end(text, start, end)
            if longer > end:
                merged = _take(text[start:longer], spare)
                if merged.problem is None:
                    chunk = merged
                    starts.skip_to(longer)
        yield PlacedChunk(chunk, line, start)


class _Starts:
    """Iterates over the offsets at which top-level statements may start; decorators belong to what they
    decorate.
    """

    def __init__(self, text: str, position: int, after_cr: bool) -> None:
        self._text = text
        self._next = self._first(position)
        self._offsets = statement_starts(text, self._next, after_cr=after_cr)

    def __iter__(self) -> Iterator[int]:
        while self._next < len(self._text):
            current = self._next
            self._next = self._after(current)
            yield current

    def peek(self) -> int:
        """The offset that comes next; the length of the text at its end."""
        return self._next

    def skip_to(self, offset: int) -> None:
        """Pass over the offsets before `offset`."""
        while self._next < offset:
            self._next = next(self._offsets, len(self._text))

    def _after(self, current: int) -> int:
        following = next(self._offsets, len(self._text))
        while self._text.startswith("@", current) and following < len(self._text):
            current, following = following, next(self._offsets, len(self._text))
        return following

    def _first(self, position: int) -> int:
        """The first line that is neither blank nor a comment: a statement, or something that stands where
        none can.
        """
        while position < len(self._text):
            match = _TRAILER.match(self._text, position)
            if match is None or match.end() == position:
                break
            position = match.end()
        return position


def _take(region: str, spare: dict[str, list[Chunk]]) -> Chunk:
    """The chunk for the text up to the next statement, without the blank and comment lines that follow it."""
    text = _without_trailer(region)
    chunk = _reused(text, spare)
    if chunk.problem and text != region:
        whole = _reused(region, spare)
        return chunk if whole.problem else whole
    return chunk


def _reused(text: str, spare: dict[str, list[Chunk]]) -> Chunk:
    same = spare.get(_key(text))
    return same.pop() if same else parse_chunk(text)


def _without_trailer(region: str) -> str:
    end = len(region)
    while end:
        line = max(region.rfind("\n", 0, end - 1), region.rfind("\r", 0, end - 1)) + 1
        content = region[line:end]
        if content.strip() and not content.startswith("#"):
            break
        end = line
    return region[:end]


def _logical_end(text: str, start: int, least: int) -> int:
    """Where the statement at `start` really ends, at or after the offset `least`: the first top-level start
    outside of strings and brackets.
    """
    for line, end, _ in logical_lines(text, start):
        if (
            end >= least
            and (end == len(text) or _starts_statement(text, end))
            and not _DECORATOR.match(text, line)
        ):
            return end
    return len(text)


def _starts_statement(text: str, offset: int) -> bool:
    return next(statement_starts(text, offset - 1, after_cr=True), -1) == offset


def _by_key(placed: tuple[PlacedChunk, ...]) -> dict[str, list[Chunk]]:
    spare: dict[str, list[Chunk]] = defaultdict(list)
    for each in reversed(placed):
        spare[each.chunk.key].append(each.chunk)
    return dict(spare)


def _shifted(rest: tuple[PlacedChunk, ...], new_first: PlacedChunk) -> list[PlacedChunk]:
    lines, offset = new_first.first_line - rest[0].first_line, new_first.start - rest[0].start
    if not lines and not offset:
        return list(rest)
    return [PlacedChunk(placed.chunk, placed.first_line + lines, placed.start + offset) for placed in rest]


def _readable(text: str) -> str:
    """`text` as `ast` takes it, code point by code point the same length: a leading byte order mark becomes a
    form feed, lone surrogates U+FFFD.
    """
    if text.startswith("\ufeff"):
        text = "\f" + text[1:]
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def _broken(text: str, error: Exception) -> Chunk:
    lines = tuple(split_lines(text))
    line = min((getattr(error, "lineno", None) or 1) - 1, len(lines) - 1)
    column = max(0, min((getattr(error, "offset", None) or 1) - 1, len(lines[line])))
    deep = isinstance(error, (RecursionError, MemoryError))
    message = "nested too deeply to be parsed" if deep else getattr(error, "msg", None) or str(error)
    return Chunk(text, _key(text), (), SyntaxProblem(message, line, column), lines)


def _key(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()


_NOTHING = Chunk("", "", ())
