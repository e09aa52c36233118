"""Notebooks in the editor: cells joined to one document, findings given back to their cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lsprotocol import types

from exportlens.lsp.analysis import Open
from exportlens.lsp.convert import to_diagnostic, to_path
from exportlens.lsp.views import CellView
from exportlens.source.notebooks import Notebook
from exportlens.source.positions import Lines

if TYPE_CHECKING:
    from exportlens.lsp.server import Server

_DEBOUNCE_SECONDS = 0.12


class _Schedule(Protocol):
    def schedule(self, document: Open, delay: float) -> None: ...


class Notebooks:
    """The notebooks that are open, by the path of the notebook."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._cells: dict[Path, list[str]] = {}
        self._joined: dict[Path, Notebook] = {}

    def owns(self, path: Path) -> bool:
        """Whether `path` is an open notebook."""
        return path in self._joined

    def take(self, uri: str) -> Open:
        """Join the cells of the notebook as they are now."""
        path = to_path(uri)
        notebook = self.server.workspace.get_notebook_document(notebook_uri=uri)
        cells = (
            [] if notebook is None else [c for c in notebook.cells if c.kind == types.NotebookCellKind.Code]
        )
        uris = [cell.document for cell in cells]
        texts = [self.server.workspace.get_text_document(cell).source for cell in uris]
        self._cells[path] = uris
        self._joined[path] = Notebook.of(list(enumerate(texts)))
        version = notebook.version if notebook is not None else None
        return self.server.analysis.put(uri, path, self._joined[path].text, version)

    def publish(self, path: Path) -> None:
        """Publish what is known of the notebook, cell by cell."""
        joined, uris = self._joined[path], self._cells[path]
        by_cell: dict[int, list[types.Diagnostic]] = {cell.index: [] for cell in joined.cells}
        for finding in self.server.analysis.findings_in(path) if joined.cells else []:
            cell, place = joined.locate_range(finding.range)
            lines = Lines(cell.source)
            diagnostic = to_diagnostic(replace(finding, range=place), lines, self.server.encoding)
            by_cell[cell.index].append(diagnostic)
        for index, diagnostics in by_cell.items():
            self.server.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uris[index], diagnostics)
            )

    def view(self, uri: str) -> CellView | None:
        """The view from the cell at `uri`; None where no open notebook has such a code cell."""
        for path, uris in self._cells.items():
            document = self.server.analysis.open.get(path)
            if uri in uris and document is not None:
                versions = [self.server.workspace.get_text_document(each).version for each in uris]
                return CellView(
                    document,
                    self.server.encoding,
                    self._joined[path],
                    tuple(uris),
                    tuple(versions),
                    uris.index(uri),
                )
        return None

    def register(self, sync: _Schedule) -> None:
        """Register the notebook notifications."""
        server = self.server

        @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
        def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
            sync.schedule(self.take(params.notebook_document.uri), 0)

        @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
        def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
            path = to_path(params.notebook_document.uri)
            before = set(self._cells.get(path, []))
            document = self.take(params.notebook_document.uri)
            for gone in before - set(self._cells[path]):
                server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(gone, []))
            sync.schedule(document, _DEBOUNCE_SECONDS)

        @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
        def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
            path = to_path(params.notebook_document.uri)
            for cell in self._cells.pop(path, []):
                server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(cell, []))
            self._joined.pop(path, None)
            server.analysis.drop(path)
