"""Run the engine in this process: quicker to profile than the command, and it shows what crashed."""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

from exportlens.config import load_config
from exportlens.engine import Engine
from exportlens.finding import Finding, Severity
from exportlens.inference.scopes import Workspace

from tests.real.score import Checked, Error


def check_in_process(base: Path, targets: list[str], mode: str) -> Checked:
    """The errors of all files of `targets`; an exception of the engine becomes a problem."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 4000))
    config = load_config(base, {"mode": mode, "torch-version": "2.13"})
    engine = Engine(config, Workspace((base,)))
    found: dict[tuple[str, object, str], Finding] = {}
    problems = []
    began = time.perf_counter()
    for file in files_below(base, targets):
        try:
            findings = engine.check(file)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno} {frame.line}"
            problems.append(
                f"internal error in {file.relative_to(base)}: {type(error).__name__}: {error} at {where}"
            )
            continue
        for finding in findings:
            key = (str(finding.path), finding.range, finding.code)
            # What one entry point leads to surely, another may reach under a condition: the error counts.
            if key not in found or finding.severity is Severity.ERROR:
                found[key] = finding
    seconds = time.perf_counter() - began
    errors = [as_error(finding, base) for finding in found.values() if finding.severity is Severity.ERROR]
    return Checked(errors, seconds, problems)


def files_below(base: Path, targets: list[str]) -> list[Path]:
    files: list[Path] = []
    for target in targets:
        path = base / target
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return files


def as_error(finding: Finding, base: Path) -> Error:
    prefix = f"{base}/"
    entry = tuple(name.removeprefix(prefix) for name in finding.entry)
    start, end = finding.range.start.line + 1, finding.range.end.line + 1
    file = (
        finding.path.relative_to(base).as_posix() if finding.path.is_relative_to(base) else str(finding.path)
    )
    return Error(file, start, end, finding.code, finding.message, entry)
