"""Text synchronisation, and diagnostics while typing: debounced, versioned, stale ones dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from lsprotocol import types

from exportlens.lsp.analysis import Open
from exportlens.lsp.convert import to_diagnostic, to_path, to_uri
from exportlens.lsp.notebooks import Notebooks
from exportlens.lsp.server import Server
from exportlens.source.positions import Lines

_DEBOUNCE_SECONDS = 0.12


class Sync:
    """Takes the editor's changes and publishes what is found."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.notebooks = Notebooks(server)
        self.on_save: list[Callable[[Path], None]] = []
        self._timers: dict[Path, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, uri: str, delay: float) -> None:
        """The text of `uri` is new: check it after `delay` seconds without further news."""
        text_document = self.server.workspace.get_text_document(uri)
        document = self.server.analysis.put(uri, to_path(uri), text_document.source, text_document.version)
        self.schedule(document, delay)

    def schedule(self, document: Open, delay: float) -> None:
        """Check `document` after `delay` seconds unless something newer comes."""
        if timer := self._timers.pop(document.path, None):
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers[document.path] = loop.call_later(delay, self._start, document, bool(delay))

    def recheck(self) -> None:
        """Check all open documents again."""
        for document in list(self.server.analysis.open.values()):
            self.schedule(document, 0)

    def drop(self, uri: str) -> None:
        """A document was closed."""
        path = to_path(uri)
        if timer := self._timers.pop(path, None):
            timer.cancel()
        self.publish(self.server.analysis.drop(path))

    def publish(self, paths: Iterable[Path]) -> None:
        """Publish all that is known of `paths`."""
        for path in sorted(paths):
            if self.notebooks.owns(path):
                self.notebooks.publish(path)
                continue
            document = self.server.analysis.open.get(path)
            findings = self.server.analysis.findings_in(path)
            lines = document.lines if document else Lines(_text_on_disk(path) if findings else "")
            self.server.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(
                    uri=document.uri if document else to_uri(path),
                    diagnostics=[to_diagnostic(finding, lines, self.server.encoding) for finding in findings],
                    version=document.version if document else None,
                )
            )

    def _start(self, document: Open, while_typing: bool) -> None:
        self._timers.pop(document.path, None)
        task = asyncio.ensure_future(self._check(document, while_typing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, document: Open, while_typing: bool) -> None:
        """While typing what is found comes first and its fixes after; else both at once."""
        analysis = self.server.analysis
        try:
            changed = await analysis.check(document)
            if changed is None:
                return
            if while_typing:
                self.publish(changed)
            with_fixes = await analysis.add_fixes(document)
            if with_fixes is None:
                return
            if with_fixes or not while_typing:
                self.publish(with_fixes | changed)
            if while_typing:
                await self._check_others(document)
        except Exception as error:
            self.server.log_error(f"checking {document.path} failed: {type(error).__name__}: {error}")

    async def _check_others(self, document: Open) -> None:
        """What the other open documents call may lie in this one."""
        for other in list(self.server.analysis.open.values()):
            if not self.server.analysis.is_current(document):
                return
            if other.path == document.path or not self.server.analysis.is_current(other):
                continue
            changed = await self.server.analysis.check(other)
            with_fixes = await self.server.analysis.add_fixes(other)
            self.publish((changed or set()) | (with_fixes or set()))


def register(server: Server) -> None:
    """Register the features of this file."""
    sync = server.sync = Sync(server)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        if params.text_document.language_id == "python":
            sync.take(params.text_document.uri, 0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        if to_path(params.text_document.uri) in server.analysis.open:
            sync.take(params.text_document.uri, _DEBOUNCE_SECONDS)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        if to_path(params.text_document.uri) in server.analysis.open:
            sync.drop(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        path = to_path(params.text_document.uri)
        if path.name == "pyproject.toml":
            server.analysis.configure(server.analysis.settings)
            sync.recheck()
        for listener in sync.on_save:
            listener(path)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        paths = [to_path(change.uri) for change in params.changes]
        if any(path.name == "pyproject.toml" for path in paths):
            server.analysis.configure(server.analysis.settings)
        elif all(path in server.analysis.open for path in paths):
            return
        server.analysis.changed_on_disk(paths)
        sync.recheck()

    sync.notebooks.register(sync)


def _text_on_disk(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""
