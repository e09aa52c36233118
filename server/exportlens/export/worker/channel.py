"""The event side of the protocol: one JSON object per line, written by one process only."""

from __future__ import annotations

import json
import math
import os
from typing import Any


def plain(value: Any) -> Any:
    """`value` as strict JSON can carry it: non-finite floats become None, unknown objects their text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)


_owner = 0  # the process that serves; 0 outside the worker


def end_if_forked() -> None:
    """End a process that the model forked off and that came back into the worker's own code.

    Let run on, it would call the model again and fork once more: each call doubles the processes.
    """
    if _owner and os.getpid() != _owner:
        os._exit(0)


class Channel:
    """Events to the server. A process forked by the model inherits it and is ignored."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.adopt()

    def adopt(self) -> None:
        """Make the calling process, freshly forked by the worker itself, the one that may speak."""
        global _owner
        _owner = os.getpid()

    @property
    def descriptor(self) -> int:
        return self._descriptor

    @property
    def is_mine(self) -> bool:
        return os.getpid() == _owner

    def send(self, event: str, **fields: Any) -> None:
        """Write one event. Raises OSError where the server is gone."""
        if not self.is_mine:
            return
        line = json.dumps(plain({"event": event, **fields}), allow_nan=False).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]
