"""Stages of a request, as they are told to the server, and the failures that end them."""

from __future__ import annotations

import time
from typing import Any

from exportlens.export.worker.channel import Channel


class StageError(Exception):
    """A stage failed in a way that has a name.

    `error` is the exception behind it and `blames` the places at fault, where they are known.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        error: BaseException | None = None,
        blames: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.error = error
        self.blames = blames


class Stages:
    """Tells the server which stage runs and keeps each one's seconds."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._started = time.perf_counter()
        self.current = "start"
        self.seconds: dict[str, float] = {}

    def enter(self, stage: str) -> None:
        """The next stage begins; a process that a model forked off and that got here ends."""
        if not self._channel.is_mine:
            import os

            os._exit(0)
        self._close()
        self.current, self._started = stage, time.perf_counter()
        self._channel.send("stage", name=stage)

    def _close(self) -> None:
        spent = time.perf_counter() - self._started
        self.seconds[self.current] = self.seconds.get(self.current, 0.0) + spent

    def put(self, key: str, value: Any) -> None:
        """Send a part of the result now, so that it is known even if a later stage takes the process down."""
        self._channel.send("part", key=key, value=value)

    def finish(self) -> None:
        self._close()
        self.put("stages", self.seconds)
