"""From a keystroke to its diagnostics, over stdio, as an editor sees it."""

from __future__ import annotations

import ast
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

WORD = "hidden_states_before"
SECONDS_PER_ANSWER = 120.0


@dataclass(frozen=True)
class KeystrokeTimes:
    """Seconds: until the first diagnostics of the opened file, and after each keystroke."""

    opening: float
    keystrokes: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.keystrokes)

    @property
    def worst(self) -> float:
        return max(self.keystrokes)


class Editor(LanguageClient):
    """An LSP client that remembers when the diagnostics of which version arrived."""

    def __init__(self) -> None:
        super().__init__("exportlens-benchmark", "1")
        self.arrived: dict[int, float] = {}
        self.changed = asyncio.Event()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def note_diagnostics(params: types.PublishDiagnosticsParams) -> None:
            if params.version is not None:
                self.arrived.setdefault(params.version, time.perf_counter())
                self.changed.set()

        @self.feature(types.WORKSPACE_CONFIGURATION)  # type: ignore[untyped-decorator]
        def give_configuration(params: types.ConfigurationParams) -> list[None]:
            return [None for _ in params.items]

    async def diagnostics_of(self, version: int) -> float:
        """The time at which the diagnostics of this version, or of a later one, arrived."""
        while not any(arrived >= version for arrived in self.arrived):
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), SECONDS_PER_ANSWER)
        return min(moment for arrived, moment in self.arrived.items() if arrived >= version)


def place_to_type(text: str) -> int:
    """The 0-based line of the last statement of the file's longest `forward`: a new line goes above it."""
    forwards = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == "forward" and len(node.body) > 2
    ]
    longest = max(forwards, key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
    return longest.body[-1].lineno - 1


async def measure(path: Path, environment: Mapping[str, str], keys: str = f"{WORD} = 1") -> KeystrokeTimes:
    """Open `path` in a new server, type `keys` one by one into its longest `forward`, wait for each answer.

    Raises TimeoutError when the server does not answer.
    """
    text = path.read_text(encoding="utf-8")
    uri = path.as_uri()
    editor = Editor()
    await editor.start_io(sys.executable, "-m", "exportlens", "server", env={**os.environ, **environment})
    try:
        await editor.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    text_document=types.TextDocumentClientCapabilities(
                        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True)
                    )
                ),
                root_uri=path.parent.as_uri(),
            )
        )
        editor.initialized(types.InitializedParams())
        start = time.perf_counter()
        editor.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, types.LanguageKind.Python, 1, text))
        )
        opening = await editor.diagnostics_of(1) - start
        line = place_to_type(text)
        lines = text.splitlines()
        indent = lines[line][: len(lines[line]) - len(lines[line].lstrip())]
        insert(editor, uri, 2, line, 0, f"{indent}\n")
        await editor.diagnostics_of(2)
        times = []
        for offset, key in enumerate(keys):
            version = offset + 3
            start = time.perf_counter()
            insert(editor, uri, version, line, len(indent) + offset, key)
            times.append(await editor.diagnostics_of(version) - start)
        await editor.shutdown_async(None)
        editor.exit(None)
        return KeystrokeTimes(opening, times)
    finally:
        await editor.stop()  # type: ignore[no-untyped-call]


def insert(editor: Editor, uri: str, version: int, line: int, column: int, content: str) -> None:
    at = types.Position(line, column)
    editor.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(version, uri),
            [types.TextDocumentContentChangePartial(range=types.Range(at, at), text=content)],
        )
    )
