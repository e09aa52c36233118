"""The server's end of the worker: start it, send one request at a time, read its events, end it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parent / "worker" / "main.py"
START_SECONDS = 120.0
LOG_BYTES = 256 * 1024
Listener = Callable[[dict[str, Any]], None]


class WorkerUnusable(Exception):
    """The interpreter does not start, or has no usable torch; the message names it and the next step."""


@dataclass
class Ended:
    """How one request ended: its parts, the exit code of its process, and why it was killed, if it was."""

    parts: dict[str, Any] = field(default_factory=dict)
    stage: str = "start"
    done: bool = False
    code: int | None = None
    reason: str | None = None
    peak_memory: int | None = None
    broken: str | None = None


class _Log:
    """The last part of what the model printed."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        while self._size > LOG_BYTES and len(self._chunks) > 1:
            self._size -= len(self._chunks.popleft())

    def text(self) -> str:
        return b"".join(self._chunks).decode(errors="replace")

    def clear(self) -> None:
        self._chunks.clear()
        self._size = 0


class WorkerProcess:
    """A warm worker in one interpreter. Not for concurrent use: `run` one request after the other."""

    def __init__(self, interpreter: Path, *, fork: bool = True) -> None:
        self.interpreter = interpreter
        self.log = _Log()
        self.facts: dict[str, Any] = {}
        self.on_output: Callable[[str], None] | None = None
        self._fork = fork
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._identity = 0
        self._killed: str | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> dict[str, Any]:
        """Start (or keep) the worker; its facts: torch, python, executable, forks. Raises WorkerUnusable."""
        if self.alive and self.facts:
            return self.facts
        await self.close()
        arguments = [str(WORKER)] if self._fork else [str(WORKER), "--once"]
        environment = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            # asking for CUDA must not initialise it in the parent, or a forked child could not use it
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        }
        try:
            self._process = await asyncio.create_subprocess_exec(
                str(self.interpreter),
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=1 << 28,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerUnusable(
                f"{self.interpreter} does not start: {error.strerror or error}. Choose another interpreter."
            ) from error
        self._reader = asyncio.create_task(self._drain())
        try:
            event = await asyncio.wait_for(self._event(), START_SECONDS)
        except asyncio.TimeoutError:
            await self.close()
            raise WorkerUnusable(f"{self.interpreter} did not answer within {START_SECONDS:.0f} s") from None
        if event is None:
            await asyncio.wait([self._reader], timeout=2)
            tail = self.log.text().strip().splitlines()[-1:] or ["it printed nothing"]
            await self.close()
            raise WorkerUnusable(f"{self.interpreter} is not a usable Python: {tail[0]}")
        if event["event"] == "unusable":
            await self.close()
            step = (
                f"Install it: {self.interpreter} -m pip install torch"
                if event.get("missing")
                else "Use an interpreter with Python 3.10 or newer and torch 2.4 or newer."
            )
            raise WorkerUnusable(f"{self.interpreter} has no usable torch ({event['message']}). {step}")
        self.facts = event
        if not event.get("forks"):
            self._fork = False
        return event

    async def _drain(self) -> None:
        process = self._process
        assert process is not None and process.stderr is not None
        while data := await process.stderr.read(1 << 16):
            self.log.add(data)
            if self.on_output:
                self.on_output(data.decode(errors="replace"))

    async def _event(self) -> dict[str, Any] | None:
        """The next event; None at the end of the stream. What is no event (a torn line) is passed over."""
        process = self._process
        assert process is not None and process.stdout is not None
        while line := await process.stdout.readline():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and "event" in event:
                    return event
        return None

    async def run(self, request: dict[str, Any], listen: Listener) -> Ended:
        """Send one request and wait for its end, limits included. Raises WorkerUnusable."""
        await self.start()
        self._identity += 1
        self._killed = None
        ended = Ended()
        process = self._process
        assert process is not None and process.stdin is not None
        process.stdin.write(json.dumps({**request, "id": self._identity}).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()
        if self._fork:
            await self._follow(ended, listen)
        else:
            await self._follow_once(ended, listen, request.get("timeout"))
        ended.reason = ended.reason or self._killed
        return ended

    async def _follow(self, ended: Ended, listen: Listener) -> None:
        while (event := await self._event()) is not None:
            _note(ended, event)
            listen(event)
            if event["event"] == "exited" and event.get("id") == self._identity:
                return
        # the warm parent itself is gone: killed from outside, with the child that dies with it
        ended.code = ended.code if ended.code is not None else -signal.SIGKILL
        await self.close()

    async def _follow_once(self, ended: Ended, listen: Listener, timeout: float | None) -> None:
        async def read() -> None:
            while (event := await self._event()) is not None:
                _note(ended, event)
                listen(event)

        try:
            await asyncio.wait_for(read(), timeout)
        except asyncio.TimeoutError:
            self._killed = "timeout"
        process = self._process
        self._kill_tree()
        if process is not None:
            ended.code = await process.wait()
        await self.close()

    def kill(self) -> None:
        """End the running request at once; `run` returns with the reason "cancelled"."""
        process = self._process
        if process is None or process.returncode is not None or process.stdin is None:
            return
        self._killed = "cancelled"
        if self._fork:
            with contextlib.suppress(ConnectionError, RuntimeError):
                process.stdin.write(json.dumps({"op": "kill", "id": self._identity}).encode() + b"\n")
        else:
            self._kill_tree()

    def _kill_tree(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """End the worker and everything that it runs."""
        process, self._process, self.facts = self._process, None, {}
        if process is None:
            return
        if process.stdin is not None and process.returncode is None:
            process.stdin.close()  # the warm parent ends its child and then itself
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), 2)
        if process.returncode is None:
            with contextlib.suppress(OSError):
                process.kill()
            await process.wait()
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
            self._reader = None
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()
            await asyncio.sleep(0)  # lets the pipes' transports close while their loop still runs


def _note(ended: Ended, event: dict[str, Any]) -> None:
    """Add one event to what is known of the request."""
    kind = event["event"]
    if kind == "stage":
        ended.stage = event["name"]
    elif kind == "part":
        ended.parts[event["key"]] = event["value"]
    elif kind == "done":
        ended.done = True
    elif kind == "broken":
        ended.broken = event["message"]
    elif kind == "exited":
        ended.code, ended.reason = event["code"], event["reason"]
        ended.peak_memory = event.get("peak_memory")
