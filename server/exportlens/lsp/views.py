"""How the editor shows a document: as one text, or as the cells of a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lsprotocol import types

from exportlens.finding import Edit, Finding, Position, Range
from exportlens.lsp.analysis import Open
from exportlens.lsp.convert import from_position, to_diagnostic, to_path, to_range, to_text_edits
from exportlens.lsp.server import Server
from exportlens.source.notebooks import Notebook
from exportlens.source.positions import Encoding, Lines


@dataclass(frozen=True)
class View:
    """A document that the editor shows as it is checked."""

    document: Open
    encoding: Encoding

    def position(self, at: types.Position) -> Position:
        """The editor's position as ours."""
        return from_position(at, self.document.lines, self.encoding)

    def range(self, place: types.Range) -> Range:
        """The editor's range as ours."""
        return Range(self.position(place.start), self.position(place.end))

    def shown(self, place: Range) -> types.Range:
        """Our range as the editor's."""
        return to_range(place, self.document.lines, self.encoding)

    def diagnostic(self, finding: Finding) -> types.Diagnostic:
        """What the editor shows of a finding."""
        return to_diagnostic(finding, self.document.lines, self.encoding)

    def changes(self, edits: Iterable[Edit]) -> dict[str, tuple[int | None, list[types.TextEdit]]] | None:
        """The edits of each text that the editor knows, with that text's version; None where they cannot be told."""
        document = self.document
        return {document.uri: (document.version, to_text_edits(edits, document.lines, self.encoding))}


@dataclass(frozen=True)
class CellView(View):
    """A notebook's document, asked about from one of its cells.

    `uris` and `versions` are those of the cells, in the order of `notebook`.
    """

    notebook: Notebook
    uris: tuple[str, ...]
    versions: tuple[int | None, ...]
    index: int

    def position(self, at: types.Position) -> Position:
        cell = self.notebook.cells[self.index]
        own = from_position(at, Lines(cell.source), self.encoding)
        return Position(own.line + cell.first_line, own.column)

    def shown(self, place: Range) -> types.Range:
        cell, own = self.notebook.locate_range(place)
        return to_range(own, Lines(cell.source), self.encoding)

    def diagnostic(self, finding: Finding) -> types.Diagnostic:
        cell, own = self.notebook.locate_range(finding.range)
        return to_diagnostic(replace(finding, range=own), Lines(cell.source), self.encoding)

    def changes(self, edits: Iterable[Edit]) -> dict[str, tuple[int | None, list[types.TextEdit]]] | None:
        """None where an edit goes beyond its cell, or over a line that only IPython understands: what Python sees
        there is not what stands there.
        """
        changed: dict[str, tuple[int | None, list[types.TextEdit]]] = {}
        for edit in edits:
            cell, own = self.notebook.locate_range(edit.range)
            if own.end.line - own.start.line != edit.range.end.line - edit.range.start.line:
                return None
            lines = Lines(cell.source)
            rows = range(own.start.line, own.end.line + 1)
            if any(lines.line(row) != self.document.lines.line(cell.first_line + row) for row in rows):
                return None
            of_cell = changed.setdefault(self.uris[cell.index], (self.versions[cell.index], []))
            of_cell[1].extend(to_text_edits([replace(edit, range=own)], lines, self.encoding))
        return changed


def view_of(server: Server, uri: str) -> View | None:
    """What is shown at `uri`: an open document, or a cell of an open notebook; else None."""
    document = server.analysis.open.get(to_path(uri))
    if document is not None:
        return View(document, server.encoding)
    return server.sync.notebooks.view(uri)
