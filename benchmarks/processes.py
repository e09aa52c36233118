"""Whole commands, timed as a user would wait for them."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SHOWN_LINES = 20


class CommandFailed(Exception):
    """A measured command did not do its work, so that its time means nothing."""


@dataclass(frozen=True)
class Contender:
    """One command; `accepted` are the exit codes with which it has done its work, `environment` is added to ours."""

    name: str
    command: Sequence[str | Path]
    accepted: tuple[int, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Times:
    """Seconds on the clock and on the processors (children included), one pair for each round."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def median_wall(self) -> float:
        return statistics.median(self.wall)

    @property
    def median_processor(self) -> float:
        return statistics.median(self.processor)


def run_once(contender: Contender) -> tuple[float, float]:
    """Wall and processor seconds of one run in a process of its own, with an empty cache folder.

    Raises CommandFailed when the exit code is none of the accepted ones.
    """
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryFile() as output:
        before, start = os.times(), time.perf_counter()
        process = subprocess.run(
            [str(word) for word in contender.command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **contender.environment, "XDG_CACHE_HOME": cache},
            check=False,
        )
        wall, after = time.perf_counter() - start, os.times()
        if process.returncode not in contender.accepted:
            output.seek(0)
            end = "\n".join(output.read().decode(errors="replace").splitlines()[-SHOWN_LINES:])
            raise CommandFailed(f"{contender.name} ended with exit code {process.returncode}:\n{end}")
    processor = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    return wall, processor


def race(contenders: Sequence[Contender], rounds: int, report: Callable[[str], None]) -> dict[str, Times]:
    """Run all contenders in turn, `rounds` times, so that what slows the machine down slows all of them."""
    times = {contender.name: Times() for contender in contenders}
    for number in range(1, rounds + 1):
        for contender in contenders:
            wall, processor = run_once(contender)
            times[contender.name].wall.append(wall)
            times[contender.name].processor.append(processor)
            report(f"round {number} of {rounds}: {contender.name} {wall:.2f} s")
    return times
