"""The warm parent: has torch imported, forks one fresh process per request, and enforces the limits.

It runs no model code itself and starts no threads (a fork keeps only the calling thread), so it answers at
any time.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from exportlens.export.worker.channel import Channel
from exportlens.export.worker.processes import descendants, put_temporary_files_into, resident_bytes

# Imported ahead because the first export would import them: what `torch.export.export` in both modes added to
# sys.modules of torch 2.13 after `import torch`. A name that another torch does not have is skipped.
WARM = (
    "torch._dynamo",
    "torch.export",
    "torch.export._trace",
    "torch._export.non_strict_utils",
    "torch._export.passes._node_metadata_hook",
    "torch._export.passes.replace_with_hop_pass_util",
    "torch._export.passes.replace_autocast_with_hop_pass",
    "torch._export.passes.replace_set_grad_with_hop_pass",
    "torch.fx.experimental.validator",
    "torch._inductor.sizevars",
    "torch._inductor.compiler_bisector",
    "torch._inductor.fx_passes.dedupe_symint_uses",
    "torch._subclasses.schema_check_mode",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._dynamo.testing",
    "torch._dynamo.backends.debugging",
    "torch.nn.attention.flex_attention",
)
POLL_SECONDS = 0.1
STACK_SECONDS = 0.1
"""What a process gets for writing its stack before it is killed."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def _prctl(option: int, value: int) -> None:
    """Linux's process control; elsewhere nothing (the group kill still holds)."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _import_torch(channel: Channel) -> bool:
    """Import torch and what an export needs; on failure tell the server why."""
    # What is imported stays: the collector need not look at it, neither now nor in the children, where a look
    # alone would make the kernel copy its pages.
    gc.disable()
    try:
        import torch
    except BaseException as error:
        channel.send(
            "unusable",
            missing=isinstance(error, ModuleNotFoundError),
            message=f"{type(error).__name__}: {error}",
        )
        return False
    import importlib

    for name in WARM:
        with suppress(Exception):
            importlib.import_module(name)
    gc.freeze()
    gc.enable()
    channel.send(
        "ready",
        torch=torch.__version__,
        python=sys.version.split()[0],
        executable=sys.executable,
        forks=hasattr(os, "fork"),
        pid=os.getpid(),
    )
    return True


@dataclass
class _Run:
    """One forked child and its limits."""

    identity: int
    pid: int
    deadline: float | None
    memory: int | None
    temporary: str | None
    """The folder of its temporary files; None where none could be made."""
    peak: int = 0
    reason: str | None = None
    status: int | None = None

    def kill(self, reason: str | None) -> None:
        """Kill the child's group and whatever left the group, once. Its end is reaped by the loop."""
        self.reason = self.reason or reason
        if reason in ("timeout", "memory") and self.status is None:
            with suppress(OSError):
                os.kill(self.pid, signal.SIGUSR1)  # it writes where it is
                time.sleep(STACK_SECONDS)
        stray = descendants(self.pid)
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        for pid in (self.pid, *stray):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def remove_temporary(self) -> None:
        """Remove its temporary files, once nothing writes to them any more."""
        if self.temporary:
            shutil.rmtree(self.temporary, ignore_errors=True)


def _temporary_folder() -> str | None:
    """A folder for a request's temporary files; None where none can be made, as on a full disk."""
    try:
        return tempfile.mkdtemp(prefix="exportlens-request-")
    except OSError:
        return None


class _Parent:
    def __init__(self, requests: int, channel: Channel) -> None:
        self._requests = requests
        self._channel = channel
        self._buffer = b""
        self._run: _Run | None = None
        self._open = True
        self._wakeup, wakeup_write = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(wakeup_write, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def loop(self) -> None:
        """Serve until the server closes the request pipe."""
        while self._open:
            watch = POLL_SECONDS if self._run else None
            readable, _, _ = select.select([self._requests, self._wakeup], [], [], watch)
            if self._wakeup in readable:
                with suppress(BlockingIOError):
                    os.read(self._wakeup, 4096)
            self._reap()
            if self._requests in readable:
                self._read()
            self._watch()
        if self._run:
            self._run.kill(None)
            with suppress(ChildProcessError):
                os.waitpid(self._run.pid, 0)
            self._run.remove_temporary()

    def _read(self) -> None:
        data = os.read(self._requests, 1 << 16)
        if not data:
            self._open = False
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._serve(json.loads(line))

    def _serve(self, request: dict[str, Any]) -> None:
        if request["op"] == "kill":
            if self._run and self._run.identity == request["id"]:
                self._run.kill("cancelled")
            return
        if self._run is not None:
            raise RuntimeError("one request at a time")
        temporary = _temporary_folder()
        pid = os.fork()
        if pid == 0:
            self._become_child(request, temporary)
        seconds, memory = request.get("timeout"), request.get("memory_limit")
        self._run = _Run(
            request["id"], pid, time.monotonic() + seconds if seconds else None, memory, temporary
        )
        self._channel.send("started", id=request["id"], pid=pid)

    def _become_child(self, request: dict[str, Any], temporary: str | None) -> None:
        """In the fork: a session of its own, default signals, then the model. Never returns."""
        code = 1
        try:
            os.setsid()
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._requests)
            os.close(self._wakeup)
            self._channel.adopt()
            if temporary:
                put_temporary_files_into(temporary)
            from exportlens.export.worker.child import run_request

            run_request(request, self._channel)
            code = 0
        except BaseException as error:
            with suppress(BaseException):
                self._channel.send("broken", message=f"{type(error).__name__}: {error}")
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(BaseException):
                    stream.flush()
            os._exit(code)

    def _watch(self) -> None:
        run = self._run
        if run is None or run.reason:
            return
        used = resident_bytes([run.pid, *descendants(run.pid)])
        run.peak = max(run.peak, used)
        if run.memory and used > run.memory:
            run.kill("memory")
        elif run.deadline and time.monotonic() > run.deadline:
            run.kill("timeout")

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if self._run and pid == self._run.pid:
                self._run.status = status
        run = self._run
        if run is None or run.status is None:
            return
        # What the model left running is ours now (subreaper): nothing may outlive its request.
        run.kill(None)
        for pid in descendants(os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        run.remove_temporary()
        self._run = None
        code = os.waitstatus_to_exitcode(run.status)
        with suppress(OSError):
            os.write(self._channel.descriptor, b"\n")  # ends a line that a killed child left half written
        self._channel.send("exited", id=run.identity, code=code, reason=run.reason, peak_memory=run.peak)


def serve(requests: int, channel: Channel) -> None:
    """The warm parent's life: import torch, then fork a child per request until the pipe closes."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    if not _import_torch(channel):
        return
    if not hasattr(os, "fork"):
        return  # the server reads `forks: false` and starts one `--once` process per request
    _Parent(requests, channel).loop()


def serve_once(requests: int, channel: Channel) -> None:
    """One request in this very process: for platforms without fork. The server enforces the limits."""
    if not _import_torch(channel):
        return
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(requests, 1 << 16)
        if not data:
            return
        line += data
    os.close(requests)
    from exportlens.export.worker.child import run_request

    temporary = _temporary_folder()
    if temporary:
        put_temporary_files_into(temporary)
    try:
        run_request(json.loads(line), channel)
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
