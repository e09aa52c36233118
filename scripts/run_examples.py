"""The main job on examples/, by the command line: check, fix copies, export before and after, one table.

`make run` calls it. Everything that it makes lies in artifacts/run/: the fixed copies, the exported programs,
and each report as JSON. Exit code 0 when it all ran and no fix made a model worse, 1 when one did, 2 when a
step could not run. What no rule can fix (an `id()` has no equivalent) stands in the table as it is.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import difflib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
OUTPUT = ROOT / "artifacts" / "run"
EXPORTLENS = Path(sys.executable).with_name("exportlens")
TARGETS = ("torch", "aoti-cpu")
SECONDS_PER_TARGET = 900
CLEAN, FOUND = 0, 1


class RunError(Exception):
    """A step could not do its work, so that the table would say nothing."""


@dataclass(frozen=True)
class Job:
    """One export: which model of which file, and where its artifacts go."""

    title: str
    file: Path
    name: str
    output: Path


def exportlens(*words: str | Path, capture: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command line; raises RunError when it could not run (exit code 2 and above, or a signal)."""
    command = [str(EXPORTLENS), *(str(word) for word in words)]
    process = subprocess.run(command, cwd=ROOT, text=True, capture_output=capture, check=False)
    if process.returncode not in (CLEAN, FOUND):
        shown = " ".join(command[1:])
        raise RunError(
            f"`exportlens {shown}` ended with exit code {process.returncode}\n{process.stderr or ''}"
        )
    return process


def exported_model(file: Path) -> str:
    """The name of the model that this example exports: what its own export call names, else its last one."""
    listed = json.loads(exportlens("models", file, "--output-format", "json").stdout)["models"]
    if not listed:
        raise RunError(f"`exportlens models {file.relative_to(ROOT)}` finds no model there")
    called = [m for m in listed if any("export call" in p["source"] for p in m["proposals"])]
    name: str = (called or listed)[-1]["name"]
    return name


def export(job: Job) -> dict[str, Any]:
    """The report of one real export, kept beside its artifacts; what could not be run is a report, too."""
    job.output.mkdir(parents=True, exist_ok=True)
    words: list[str | Path] = ["export", f"{job.file}:{job.name}", "--output", job.output]
    for target in TARGETS:
        words += ["--target", target]
    words += ["--timeout", str(SECONDS_PER_TARGET), "--output-format", "json"]
    command = [str(EXPORTLENS), *(str(word) for word in words)]
    process = subprocess.run(command, cwd=job.file.parent, text=True, capture_output=True, check=False)
    try:
        report: dict[str, Any] = json.loads(process.stdout)
    except ValueError:
        raise RunError(
            f"exporting {job.title} printed no report (exit code {process.returncode}):\n"
            f"{process.stderr[-2000:]}"
        ) from None
    (job.output / "report.json").write_text(json.dumps(report, indent=2))
    return report


# ---------------------------------------------------------------- what the table says


def outcome(report: dict[str, Any]) -> str:
    """`exports`, `exports at fixed sizes`, `wrong`, or where it failed."""
    failure = report["failure"]
    if failure is None:
        failure = next((t["failure"] for t in report["targets"] if t["failure"] is not None), None)
    if failure is not None:
        return "wrong" if failure["kind"] == "mismatch" else f"fails: {failure['kind']}"
    if not report["ok"]:
        return "fails"
    dims = [dim for mode in report.get("modes", []) for dim in mode.get("dynamic_dims", [])]
    return "exports, dynamic" if dims else "exports"


def equal_to_eager(report: dict[str, Any]) -> str:
    """The largest difference of any target to eager, `no` where they differ, `-` if not compared."""
    if (report["failure"] or {}).get("kind") == "mismatch":
        return "no"
    if any((target["failure"] or {}).get("kind") == "mismatch" for target in report["targets"]):
        return "no"
    errors = [target["max_abs_error"] for target in report["targets"]]
    known = [error for error in errors if error is not None]
    if not known:
        return "-"
    return f"yes ({max(known):.0e})" if report["ok"] else "in part"


def artifacts(report: dict[str, Any]) -> str:
    made = [
        f"{target['name']} {target['bytes'] / 1024:,.0f} KiB"
        for target in report["targets"]
        if target["status"] == "ok" and target["artifact"]
    ]
    return ", ".join(made) or "-"


def table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


# ---------------------------------------------------------------- the steps


def heading(text: str) -> None:
    line = f"==> {text}"
    print(f"\n\033[1m{line}\033[0m\n" if sys.stdout.isatty() else f"\n{line}\n", flush=True)


def fix_copies(files: list[Path]) -> Path:
    """Fix a copy of the whole folder: the configuration stays beside the files. Print what changed."""
    copies = OUTPUT / "examples"
    shutil.copytree(EXAMPLES, copies, ignore=shutil.ignore_patterns("__pycache__", "exported"))
    fixed = [copies / file.relative_to(EXAMPLES) for file in files]
    exportlens("check", "--fix", "--unsafe-fixes", *fixed)
    for file, copy in zip(files, fixed, strict=True):
        print_changes(file, copy)
    return copies


def print_changes(file: Path, copy: Path) -> None:
    """A unified diff, in colour on a terminal."""
    before, after = (path.read_text().splitlines(keepends=True) for path in (file, copy))
    old, new = str(file.relative_to(ROOT)), str(copy.relative_to(ROOT))
    for line in difflib.unified_diff(before, after, old, new):
        colour = {"+": "32", "-": "31", "@": "36"}.get(line[0])
        if colour and sys.stdout.isatty():
            line = f"\033[{colour}m{line.rstrip()}\033[0m\n"
        print(line, end="")


def examples(names: list[str]) -> list[Path]:
    """The example files with these stems, all when none is named. Raises RunError for a name that is none."""
    every = [*sorted(EXAMPLES.glob("tutorial/*.py")), *sorted(EXAMPLES.glob("hazards/*.py"))]
    unknown = set(names) - {file.stem for file in every}
    if unknown:
        known = ", ".join(file.stem for file in every)
        raise RunError(f"no example is called {', '.join(sorted(unknown))}; there are {known}")
    return [file for file in every if not names or file.stem in names]


def export_all(jobs: list[Job], processes: int) -> dict[str, dict[str, Any]]:
    reports: dict[str, dict[str, Any]] = {}
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        running = {pool.submit(export, job): job for job in jobs}
        for done in concurrent.futures.as_completed(running):
            job = running[done]
            reports[job.title] = done.result()
            print(f"[{len(reports):2}/{len(jobs)}] {job.title}: {outcome(reports[job.title])}", flush=True)
    return reports


def run(files: list[Path], processes: int) -> int:
    started = time.monotonic()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)

    heading("exportlens check examples")
    exportlens("check", *files, capture=False)

    heading(f"exportlens check --fix --unsafe-fixes, on copies in {(OUTPUT / 'examples').relative_to(ROOT)}")
    copies = fix_copies(files)

    heading(f"exportlens export, before and after, for {' and '.join(TARGETS)}")
    jobs = []
    for file in files:
        title = str(file.relative_to(EXAMPLES))
        for when, place in (("before", file), ("after", copies / title)):
            folder = OUTPUT / when / file.stem
            jobs.append(Job(f"{title} {when}", place, exported_model(place), folder))
    reports = export_all(jobs, processes)

    rows: list[tuple[str, ...]] = [("model", "before", "after", "equal to eager?", "artifact")]
    worse: list[str] = []
    exported = 0
    for file in files:
        title = str(file.relative_to(EXAMPLES))
        before, after = reports[f"{title} before"], reports[f"{title} after"]
        worse += [title] if before["ok"] and not after["ok"] else []
        exported += after["ok"]
        rows.append((title, outcome(before), outcome(after), equal_to_eager(after), artifacts(after)))
    print(f"\n{table(rows)}")
    print(f"\n{time.monotonic() - started:.0f} s. Artifacts and reports: {OUTPUT.relative_to(ROOT)}/")
    rest = "" if exported == len(files) else "; the others need their author"
    print(f"{exported} of {len(files)} fixed copies export and equal eager{rest}.")
    if worse:
        print(f"Worse than before: {', '.join(worse)}. No fix may do that: see report.json.")
    print("Next: `make code` opens these examples in VS Code with the extension.")
    return 1 if worse else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, such as data_dependent_if")
    default = min(2, os.cpu_count() or 1)
    parser.add_argument(
        "--processes", type=int, default=default, help=f"exports at once (default: {default})"
    )
    options = parser.parse_args()
    try:
        return run(examples(options.names), options.processes)
    except (RunError, OSError) as error:
        print(f"make run: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nmake run: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
