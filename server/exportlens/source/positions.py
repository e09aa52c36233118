"""Columns: code points (ours), UTF-16 and UTF-8 code units (editors), offsets into a text."""

from __future__ import annotations

import bisect
import re
from typing import Literal

from exportlens.finding import Position

Encoding = Literal["utf-8", "utf-16", "utf-32"]
_LINE_END = re.compile(r"\r\n|\n|\r")


def units(text: str, encoding: Encoding) -> int:
    """The length of `text` in code units of `encoding`; lone surrogates count as one UTF-16 unit."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-16":
        return len(text) + sum(1 for char in text if char > "\uffff")
    return len(text.encode("utf-8", "surrogatepass"))


def to_units(line: str, column: int, encoding: Encoding) -> int:
    """The column in code units for a column in code points."""
    return units(line[:column], encoding) + max(0, column - len(line))


def from_units(line: str, column: int, encoding: Encoding) -> int:
    """The column in code points for one in code units; within a surrogate pair or beyond the line it is
    rounded down.
    """
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    count = 0
    for index, char in enumerate(line):
        count += units(char, encoding)
        if count > column:
            return index
    return len(line)


class Lines:
    """The lines of one text: offsets and positions either way."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def __len__(self) -> int:
        return len(self._starts)

    def line(self, index: int) -> str:
        """Line `index` without its end; "" beyond the last."""
        if index >= len(self._starts):
            return ""
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self.text)
        return self.text[self._starts[index] : end].rstrip("\r\n")

    def offset(self, position: Position) -> int:
        """The offset of `position` in the text, clamped to it."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        return start + min(position.column, len(self.line(position.line)))

    def position(self, offset: int) -> Position:
        """The position of `offset`."""
        line = bisect.bisect_right(self._starts, offset) - 1
        return Position(line, offset - self._starts[line])
