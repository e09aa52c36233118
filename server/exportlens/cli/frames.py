"""Findings as text: a line with place and words, and the code with the place underlined."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from exportlens.checking import Sources
from exportlens.finding import Applicability, Finding, Range, Severity
from exportlens.source.positions import Lines

_COLOUR = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFORMATION: "blue"}
_CONTEXT = 2
_LONGEST = 4


def shown_path(path: Path) -> str:
    """`path` relative to the working directory where it lies below, else whole."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def render_findings(findings: Iterable[Finding], sources: Sources, *, fixes: bool = True) -> Iterator[str]:
    """One block of text for each finding."""
    lines: dict[Path, Lines] = {}
    for finding in findings:
        if finding.path not in lines:
            lines[finding.path] = Lines(sources.readable(finding.path) or "")
        yield "\n".join(_block(finding, lines[finding.path], sources, fixes))


def place_of(finding: Finding, sources: Sources) -> str:
    """Path, row and column; in a notebook the cell, too."""
    start = finding.range.start
    notebook = sources.notebooks.get(finding.path)
    if notebook is None or not notebook.notebook.cells:
        return f"{shown_path(finding.path)}:{start.line + 1}:{start.column + 1}"
    cell, start = notebook.notebook.locate(start)
    return f"{shown_path(finding.path)}:cell {cell.index + 1}:{start.line + 1}:{start.column + 1}"


def _block(finding: Finding, lines: Lines, sources: Sources, fixes: bool) -> Iterator[str]:
    place = click.style(place_of(finding, sources), bold=True)
    severity = click.style(finding.severity.value, fg=_COLOUR[finding.severity], bold=True)
    code = click.style(finding.code, fg=_COLOUR[finding.severity])
    yield f"{place}: {severity} {code} {finding.message}"
    notebook = sources.notebooks.get(finding.path)
    first_row = 1
    if notebook is not None and notebook.notebook.cells:
        cell, _ = notebook.notebook.locate(finding.range.start)
        first_row = 1 - cell.first_line
    width, frame = code_frame(lines, finding.range, first_row=first_row, colour=_COLOUR[finding.severity])
    yield from frame
    margin = " " * width + " " + click.style("=", fg="bright_black") + " "
    for note in finding.notes:
        yield f"{margin}{click.style('note', bold=True)}: {note}"
    if finding.fix is not None and fixes:
        how = {
            Applicability.SAFE: "--fix applies it",
            Applicability.UNSAFE: "--fix --unsafe-fixes applies it",
            Applicability.DISPLAY_ONLY: "apply it by hand",
        }[finding.fix.applicability]
        yield f"{margin}{click.style('fix', fg='green', bold=True)}: {finding.fix.message} ({how})"
    yield ""


def code_frame(
    lines: Lines, place: Range, *, first_row: int = 1, colour: str = "red"
) -> tuple[int, list[str]]:
    """The width of the row numbers, and the code around `place`, underlined; long places are cut after a few
    lines.
    """
    start, end = place.start, place.end
    first = max(0, 1 - first_row, start.line - _CONTEXT)
    last = min(
        max(start.line, end.line if end.column else end.line - 1), start.line + _LONGEST, len(lines) - 1
    )
    width = len(str(last + first_row))
    bar = click.style("|", fg="bright_black")
    frame = [f"{' ' * width} {bar}"]
    for row in range(first, last + 1):
        text = lines.line(row)
        number = click.style(f"{row + first_row:>{width}}", fg="bright_black")
        frame.append(f"{number} {bar} {_visible(text)}".rstrip())
        if row >= start.line:
            left = start.column if row == start.line else len(text) - len(text.lstrip())
            right = end.column if row == end.line else len(text)
            marks = "^" * max(1, _columns(text[left:right]))
            frame.append(f"{' ' * width} {bar} {' ' * _columns(text[:left])}{click.style(marks, fg=colour)}")
    return width, frame


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else "    " if char == "\t" else " " for char in text)


def _columns(text: str) -> int:
    """The width of `text` on a terminal: tabs as four, wide East Asian characters as two."""
    if text.isascii() and "\t" not in text:
        return len(text)
    import unicodedata

    wide = sum(1 for char in text if unicodedata.east_asian_width(char) in "WF")
    none = sum(1 for char in text if unicodedata.combining(char))
    return len(text) + 3 * text.count("\t") + wide - none


__all__ = ["code_frame", "place_of", "render_findings", "shown_path"]
