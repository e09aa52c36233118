"""Notebooks: code cells as one document, and the way back from its lines to the cells."""

from __future__ import annotations

import bisect
import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exportlens.finding import Position, Range
from exportlens.source.files import SourceFile, UnreadableSource
from exportlens.source.lexing import split_lines

_ASSIGNED_MAGIC = re.compile(r"(?P<target>\s*[\w.,\s\[\]]+=\s*)[%!]")
# Cell magics whose body is still Python of the notebook; the body of any other (%%bash, %%html, ...) is not.
_PYTHON_CELL_MAGICS = frozenset(
    {"time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "python", "python3", "py", "debug"}
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell: its place among all cells of the notebook, its own source, and its first line in the
    document.
    """

    index: int
    source: str
    first_line: int


@dataclass(frozen=True)
class Notebook:
    """The code cells of one notebook joined to one text; lines that IPython understands and Python does not
    are blanked.
    """

    text: str
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, sources: Sequence[tuple[int, str]]) -> Notebook:
        """Join cells, given as (index in the notebook, source)."""
        cells: list[Cell] = []
        lines: list[str] = []
        for index, source in sources:
            cells.append(Cell(index, source, len(lines)))
            lines.extend(_python_lines(source))
        return cls("\n".join(lines) + "\n" if lines else "", tuple(cells))

    def locate(self, position: Position) -> tuple[Cell, Position]:
        """The cell that holds `position` of the document, and the position within that cell's source."""
        at = bisect.bisect_right([cell.first_line for cell in self.cells], position.line) - 1
        cell = self.cells[max(0, at)]
        return cell, Position(position.line - cell.first_line, position.column)

    def locate_range(self, place: Range) -> tuple[Cell, Range]:
        """The cell that holds the start of `place`, and the range within it, cut at the cell's end."""
        cell, start = self.locate(place.start)
        lines = split_lines(cell.source)
        end = Position(place.end.line - cell.first_line, place.end.column)
        if end.line >= len(lines):
            end = Position(len(lines) - 1, len(lines[-1]))
        return cell, Range(start, max(start, end))


def _python_lines(source: str) -> list[str]:
    lines = split_lines(source)
    if lines and lines[0].startswith("%%"):
        name = re.match(r"%%(\w*)", lines[0])
        if name is None or name[1] not in _PYTHON_CELL_MAGICS:
            return [""] * len(lines)
    return [_python_line(line) for line in lines]


def _python_line(line: str) -> str:
    if match := _ASSIGNED_MAGIC.match(line):
        return f"{match['target']}None"
    stripped = line.lstrip()
    if stripped[:1] in ("%", "!", "?") or (
        stripped.endswith("?") and not stripped.startswith("#") and "'" not in line and '"' not in line
    ):
        return line[: len(line) - len(stripped)] + "pass"
    return line


@dataclass(frozen=True)
class NotebookFile:
    """An `.ipynb` file: its JSON and its code cells as a document."""

    file: SourceFile
    content: dict[str, Any]
    notebook: Notebook

    @classmethod
    def read(cls, file: SourceFile) -> NotebookFile:
        """Raises UnreadableSource when the file is no notebook or not one of Python."""
        try:
            content = json.loads(file.text)
            cells = content["cells"]
            language = content.get("metadata", {}).get("kernelspec", {}).get("language", "python")
            sources = [
                (index, _joined(cell["source"]))
                for index, cell in enumerate(cells)
                if cell["cell_type"] == "code"
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableSource(
                f"{file.path} is not a notebook of format 4 (no list of cells could be read from it)"
            ) from error
        return cls(file, content, Notebook.of(sources if language == "python" else []))

    def with_document(self, text: str) -> str:
        """The file's text with its cells taken from `text`, the changed text of the document.

        Lines that were blanked for Python (magics) and stand unchanged in `text` keep what they were.
        """
        old, new = split_lines(self.notebook.text)[:-1], split_lines(text)
        if new and not new[-1]:
            new.pop()
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        original = [line for cell in self.notebook.cells for line in split_lines(cell.source)]
        by_cell: dict[int, list[str]] = {cell.index: [] for cell in self.notebook.cells}
        owner = [cell.index for cell in self.notebook.cells for _ in split_lines(cell.source)]
        touched: set[int] = set()
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                for row in range(i1, i2):
                    by_cell[owner[row]].append(original[row])
            elif j2 > j1 or i2 > i1:
                cell = owner[min(i1, len(owner) - 1)] if i2 > i1 or i1 == 0 else owner[i1 - 1]
                by_cell[cell] += new[j1:j2]
                touched |= {cell, *(owner[row] for row in range(i1, i2))}
        return self.with_cells({index: "\n".join(by_cell[index]) for index in touched})

    def with_cells(self, sources: dict[int, str]) -> str:
        """The file's text with the sources of some cells, by index, replaced."""
        content = {**self.content, "cells": list(self.content["cells"])}
        for index, source in sources.items():
            old = content["cells"][index]
            lines: Any = source.splitlines(keepends=True) if isinstance(old["source"], list) else source
            content["cells"][index] = {**old, "source": lines}
        indent = re.search(r"^\{\r?\n([ \t]+)", self.file.text)
        end = "\n" if self.file.text.endswith("\n") else ""
        return json.dumps(content, indent=indent[1] if indent else None, ensure_ascii=False) + end


def is_notebook(path: Path) -> bool:
    """Whether `path` names a notebook."""
    return path.suffix == ".ipynb"


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
