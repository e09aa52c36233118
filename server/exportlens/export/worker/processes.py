"""Process trees, and where a process was when it ended. Trees are read from /proc or from ps: no third-party package is at hand in the user's interpreter."""

from __future__ import annotations

import faulthandler
import getpass
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress


def _parents() -> dict[int, int]:
    """Every process's parent, by pid; empty where the platform does not tell."""
    table: dict[int, int] = {}
    if sys.platform == "linux":
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", "rb") as file:
                        # the command name, in parentheses, may itself hold spaces and parentheses
                        table[int(entry)] = int(file.read().rpartition(b")")[2].split()[1])
                except (OSError, IndexError, ValueError):
                    continue
    elif os.name == "posix":
        output = subprocess.run(
            ["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False
        ).stdout
        for line in output.splitlines():
            pid, parent = line.split()
            table[int(pid)] = int(parent)
    return table


def _children(pid: int) -> list[int] | None:
    """A process's children as Linux lists them; None where it does not (proc(5): CONFIG_PROC_CHILDREN)."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += [int(word) for word in file.read().split()]
    except OSError:
        return [] if found or not os.path.exists(f"/proc/{pid}/task") else None
    return found


def descendants(root: int) -> list[int]:
    """The pids below `root`, children first; without `root`."""
    if _children(os.getpid()) is not None:
        below: list[int] = []
        pending = [root]
        while pending:
            pids = _children(pending.pop(0)) or []
            below += pids
            pending += pids
        return below
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents().items():
        children[parent].append(pid)
    found: list[int] = []
    queue = list(children[root])
    while queue:
        pid = queue.pop(0)
        found.append(pid)
        queue.extend(children[pid])
    return found


def resident_bytes(pids: list[int]) -> int:
    """Resident memory of these processes together, in bytes; shared pages count in each."""
    total = 0
    if sys.platform == "linux":
        page = os.sysconf("SC_PAGE_SIZE")
        for pid in pids:
            try:
                with open(f"/proc/{pid}/statm") as file:
                    total += int(file.read().split()[1]) * page
            except (OSError, IndexError, ValueError):
                continue
    elif os.name == "posix" and pids:
        command = ["ps", "-o", "rss=", "-p", ",".join(map(str, pids))]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        total = sum(int(line) * 1024 for line in output.split())
    return total


def leave_a_stack(path: str | None) -> None:
    """From now on this process writes its stack to a file when it crashes, and on SIGUSR1, which comes before it is
    killed at a limit.
    """
    if path is None:
        return
    file = open(path, "w")  # noqa: SIM115 - for as long as the process lives
    faulthandler.enable(file)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, file)


def put_temporary_files_into(folder: str) -> None:
    """From now on what this process and its children write to "the temporary folder" lands in `folder`, which is removed with
    the request: a process that is killed removes nothing, and some packages wait for an orderly end of Python to do it.
    """
    with suppress(OSError, KeyError, ImportError):
        # What torch compiled for one request is used by the next: its cache stays where torch has it by default.
        user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
        cache = os.path.join(tempfile.gettempdir(), f"torchinductor_{user}")
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", cache)
    os.environ["TMPDIR"] = os.environ["TMP"] = os.environ["TEMP"] = folder
    tempfile.tempdir = None  # asked for anew
