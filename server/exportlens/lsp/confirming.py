"""Confirmation on save: models whose inputs are known are exported again in the background, if the user wants that."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from exportlens.lsp.exporting import Exporting
from exportlens.lsp.server import Server

if TYPE_CHECKING:
    from exportlens.export.request import ExportRequest


class Confirming:
    """The files that wait to be confirmed, and the one that is: a newer save of it, and whatever the user asks for,
    ends it.
    """

    def __init__(self, server: Server, exporting: Exporting) -> None:
        self.server = server
        self.exporting = exporting
        self._waiting: list[Path] = []
        self._now: Path | None = None
        self._task: asyncio.Task[None] | None = None

    def saved(self, path: Path) -> None:
        """A file was saved."""
        permissions = self.server.permissions
        if not (permissions.trusted and permissions.confirm_on_save) or path.suffix != ".py":
            return
        if path not in self._waiting:
            self._waiting.append(path)
        if self._now == path:
            self._stop()
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._work())

    def give_way(self) -> None:
        """Leave the worker to what the user asked for; what was interrupted is not taken up again before the next
        save.
        """
        self._waiting.clear()
        self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._now = None

    async def _work(self) -> None:
        while self._waiting:
            path = self._now = self._waiting.pop(0)
            try:
                await self._confirm(path)
            except Exception as error:
                self.server.log_error(f"confirming {path} failed: {type(error).__name__}: {error}")
        self._now = None

    async def _confirm(self, path: Path) -> None:
        for request in await asyncio.to_thread(self._requests, path):
            async with self.exporting.told({}, f"Confirming {request.name}") as tell:
                report = await self.exporting.confirm(request, tell)
            ended = (
                "exports" if report.ok else f"does not: {report.failure.message if report.failure else ''}"
            )
            self.server.log(f"confirmed on save: {request.name} {ended}")

    def _requests(self, path: Path) -> list[ExportRequest]:
        """The models of the file that have inputs which a person or a program wrote down, none that were guessed."""
        from exportlens.export.models import find_models
        from exportlens.export.request import GUESSES, ExportRequest
        from exportlens.source.files import UnreadableSource, read_source

        try:
            text = read_source(path).text
        except UnreadableSource:
            return []
        permissions = self.server.permissions
        requests = []
        for model in find_models(path, text):
            known = tuple(proposal for proposal in model.proposals if proposal.source not in GUESSES)
            used = self.exporting.inputs_used(model.model)
            if not known and used is None:
                continue
            request = ExportRequest(
                model.model,
                proposals=known,
                mode=None if permissions.mode == "auto" else permissions.mode,
                targets=(),
                timeout=permissions.timeout,
            )
            requests.append(request if used is None else replace(request, given=used))
        return requests
