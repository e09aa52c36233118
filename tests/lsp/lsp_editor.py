"""What a person does in an editor, as the protocol has it."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types
from pytest_lsp import LanguageClient

MODEL = """import torch


class Gate(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y
"""


class Editor:
    """What a person does in an editor, in few words."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.version = 0
        self.encoding: str = getattr(client, "encoding", "utf-16")

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> str:
        self.version += 1
        (self.folder / name).write_text(text, encoding="utf-8")
        item = types.TextDocumentItem(self.uri(name), "python", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return self.uri(name)

    def change(self, uri: str, text: str, where: types.Range | None = None) -> int:
        self.version += 1
        change = (
            types.TextDocumentContentChangeWholeDocument(text)
            if where is None
            else types.TextDocumentContentChangePartial(range=where, text=text)
        )
        identifier = types.VersionedTextDocumentIdentifier(self.version, uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        return self.version

    async def pause(self, seconds: float) -> None:
        """Let the server go on."""
        await asyncio.sleep(seconds)

    async def diagnostics(
        self, uri: str, wanted: Callable[[list[types.Diagnostic]], bool] = bool, seconds: float = 30
    ) -> list[types.Diagnostic]:
        """The diagnostics of `uri`, as soon as they are as wanted."""
        for _ in range(int(seconds * 50)):
            found = list(self.client.diagnostics.get(uri, []))
            if uri in self.client.diagnostics and wanted(found):
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(
            f"after {seconds} s: {self.client.diagnostics.get(uri)}\n{self.client.log_messages}"
        )

    async def actions(
        self, uri: str, where: types.Range, only: list[str] | None = None
    ) -> list[types.CodeAction]:
        context = types.CodeActionContext(diagnostics=[], only=only)
        identifier = types.TextDocumentIdentifier(uri)
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(identifier, where, context)
        )
        return [_whole(action) for action in found or []]


def _whole(action: types.CodeAction | types.Command) -> types.CodeAction:
    """lsprotocol takes a code action that has a command for a bare Command, whose name is then its fields as text."""
    if isinstance(action, types.CodeAction):
        return action
    fields = ast.literal_eval(action.command)
    command = types.Command(fields["title"], fields["command"], arguments=fields["arguments"])
    return types.CodeAction(action.title, command=command)
