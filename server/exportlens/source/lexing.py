"""Where strings, comments and brackets are: just enough of Python's lexer to work on text that does not
parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\n\r]*)
    | (?P<string>
          \"{3}[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*\"{3}
        | '{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'{3}
        | "(?!"")[^"\\\n\r]*(?:\\(?:\r\n|.)[^"\\\n\r]*)*"
        | '(?!'')[^'\\\n\r]*(?:\\(?:\r\n|.)[^'\\\n\r]*)*'
      )
    | (?P<unterminated>\"{3}|'{3})
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<continuation>\\(?:\r\n|\n|\r))
    | (?P<newline>\r\n|\n|\r)
    """,
    re.VERBOSE | re.DOTALL,
)
_NEWLINE = re.compile(r"\r\n|\n|\r")
_START = re.compile(r"\n[\f\ufeff]*(?!(?:else|elif|except|finally)\b)[^\s#)\]}\\]")
_START_AFTER_CR = re.compile(r"[\n\r][\f\ufeff]*(?!(?:else|elif|except|finally)\b)[^\s#)\]}\\]")


def split_lines(text: str) -> list[str]:
    """The lines of `text` without their ends, as Python and LSP count them (`str.splitlines` also cuts at
    form feeds and more).
    """
    return _NEWLINE.split(text)


def count_newlines(text: str, start: int = 0, end: int | None = None) -> int:
    """How many lines end in `text[start:end]`."""
    end = len(text) if end is None else end
    newlines = text.count("\n", start, end)
    if "\r" in text:
        newlines += text.count("\r", start, end) - text.count("\r\n", start, end)
    return newlines


def has_lone_carriage_return(text: str) -> bool:
    """Whether some line ends in a carriage return alone."""
    return "\r" in text and text.count("\r") > text.count("\r\n")


def statement_starts(text: str, position: int, *, after_cr: bool = False) -> Iterator[int]:
    """Offsets after `position` at which a line begins that could begin a top-level statement (it may also lie
    within a string).
    """
    for match in (_START_AFTER_CR if after_cr else _START).finditer(text, position):
        yield match.start() + 1


def logical_lines(text: str, position: int = 0) -> Iterator[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """Logical lines from `position` on: (start, end, spans of its comments), as offsets; `end` lies after the
    line's end.

    A string that is never closed ends the iteration: the rest of the text is one last line.
    """
    depth = 0
    start = position
    comments: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(text, position):
        kind = match.lastgroup
        if kind == "newline" and depth == 0:
            yield start, match.end(), tuple(comments)
            start, comments = match.end(), []
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(0, depth - 1)
        elif kind == "comment":
            comments.append(match.span())
        elif kind == "unterminated":
            break
    if start < len(text):
        yield start, len(text), tuple(comments)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, and the 0-based lines that it speaks for: its own, and the whole logical line when it ends
    one.
    """

    text: str
    line: int
    first_line: int


def comments(text: str) -> Iterator[Comment]:
    """All comments of `text`; text in strings that looks like one is none."""
    line, counted = 0, 0
    for start, end, spans in logical_lines(text):
        line += count_newlines(text, counted, start)
        counted = start
        body = text[start:end].rstrip("\r\n")
        for comment_start, comment_end in spans:
            own = line + count_newlines(text, start, comment_start)
            ends_line = comment_end == start + len(body)
            yield Comment(text[comment_start:comment_end], own, line if ends_line else own)
