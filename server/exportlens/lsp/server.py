"""The server itself: its state, and the one place where its features are registered."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from exportlens import __version__
from exportlens.lsp.analysis import Analysis
from exportlens.lsp.convert import to_encoding
from exportlens.source.positions import Encoding

if TYPE_CHECKING:
    from exportlens.lsp.sync import Sync

_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithCells(
            notebook="*", cells=[types.NotebookCellLanguage(language="python")]
        )
    ],
    save=True,
)


@dataclass(frozen=True, slots=True)
class Permissions:
    """What may be run: anything at all (a trusted workspace), and in the background after a save, how, and for how
    many seconds.
    """

    trusted: bool = True
    confirm_on_save: bool = False
    mode: str = "auto"
    timeout: float = 600.0


class Server(LanguageServer):
    """The language server; `analysis` knows the documents, `sync` publishes what is found, everything else is
    protocol.
    """

    sync: Sync

    def __init__(self) -> None:
        super().__init__(
            "exportlens",
            __version__,
            types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=_NOTEBOOKS,
        )
        self.permissions = Permissions()
        self.hover_shows_diagnostics = False
        self.analysis = Analysis(self.log_error, self.complain)

    @property
    def encoding(self) -> Encoding:
        """The encoding of columns that was negotiated."""
        return to_encoding(self.workspace.position_encoding)

    def log(self, message: str) -> None:
        """A line for the editor's log."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Info, message))

    def log_error(self, message: str) -> None:
        """An error for the editor's log; the server goes on."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    def complain(self, message: str) -> None:
        """Tell the user of something that only they can mend."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"ExportLens: {message}"))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors of handlers go to the log, not into the user's face."""
        self.log_error(f"{type(error).__name__}: {error}")


def make_server() -> Server:
    """A server with all features."""
    from exportlens.lsp import code_actions, code_lens, configuration, exporting, hover, sync

    server = Server()
    for feature in (sync, configuration, code_actions, code_lens, hover, exporting):
        feature.register(server)
    return server


def serve(port: int | None = None) -> None:
    """Serve over standard input and output, or on a local TCP port; returns when the client has gone."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    server = make_server()
    try:
        if port is None:
            server.start_io()
        else:
            server.start_tcp("127.0.0.1", port)
    finally:
        server.analysis.close()
