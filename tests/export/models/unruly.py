"""Models that misbehave while they are built, run or traced; each class is one way."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn


class Sound(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.layer = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


class Exits(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.exit(3)


class ExitsAtOnce(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os._exit(0)


class Aborts(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.abort()


class ReadsNowhere(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ctypes.string_at(0)
        return x


class Recurses(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(x)


class Hangs(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while True:
            time.sleep(0.1)


class HangsIgnoringSignals(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(0.1)


class HangsInTheConstructor(Sound):
    def __init__(self) -> None:
        super().__init__()
        time.sleep(3600)


class BreaksInTheConstructor(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, -4)


class HangsWhileTraced(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_exporting():
            time.sleep(3600)
        return super().forward(x)


class Forks(Sound):
    """The forked child runs on through the worker's own code, and must not be heard."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.fork()
        return super().forward(x)


class LeavesADaemon(Sound):
    def __init__(self, note: str) -> None:
        super().__init__()
        self.note = Path(note)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.note.exists():
            daemon = subprocess.Popen(["sleep", "3600"], start_new_session=True)
            self.note.write_text(str(daemon.pid))
        return super().forward(x)


class LeavesTemporaryFiles(Sound):
    """Writes what nobody removes, in its own process and in one that it starts, and then hangs or is ended."""

    def __init__(self, note: str, hangs: bool) -> None:
        super().__init__()
        self.note, self.hangs = Path(note), hangs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, name = tempfile.mkstemp()
        other = subprocess.run(["mktemp"], capture_output=True, text=True, check=True).stdout.strip()
        with self.note.open("a") as note:
            note.write(f"{name}\n{other}\n")
        if self.hangs:
            time.sleep(3600)
        return super().forward(x)


class Prints(Sound):
    def __init__(self) -> None:
        super().__init__()
        os.write(1, b"noise\n" * 500_000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print('{"event": "done"}')
        print(x)
        return super().forward(x)


class ReadsTheTerminal(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if sys.stdin.read() != "":
            raise RuntimeError("stdin is the protocol's")
        return super().forward(x)


class ChangesFolder(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.chdir("/")
        return super().forward(x)


class ClosesEverything(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.closerange(3, 1024)
        return super().forward(x)


class Devours(Sound):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hoard = []
        for _ in range(400):
            hoard.append(torch.ones(4_000_000))  # 16 MB each
            time.sleep(0.01)
        return x + len(hoard)


class FakeCuda(Sound):
    """Parameters on a CUDA device that is not there, as tools for large models make them."""

    def __init__(self) -> None:
        super().__init__()
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode(allow_non_fake_inputs=True):
            self.weight = nn.Parameter(torch.empty(4, 8, device="cuda"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.T


class AssertsWhileTraced(Sound):
    """The program asserts what eager does not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_exporting():
            torch._assert_async(x.sum() > 1e9, "too small")
        return super().forward(x)


class PrintsAndBranches(Prints):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return super().forward(x)
        return super().forward(-x)
