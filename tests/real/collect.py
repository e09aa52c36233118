"""Measure torch.export on the modules of the research packages and append a row for each: a development set.

    python scripts/install_real.py research
    python -m tests.real.collect --most 20     # up to 20 modules of each package; run again with more
    python -m tests.real.collect --publish     # what was measured -> tests/real/data/collected.jsonl

Each file is imported, each class constructed, run and exported in children with time limits, two packages at
a time. Rows go to .tools/real2/outcomes.jsonl as they come; what is there already is not measured again.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import hashlib
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "real" / "data"
PACKAGES_HOME = ROOT / ".tools" / "real"
RESEARCH_HOME = ROOT / ".tools" / "real2"
# Of wall-clock time, generous: a busy machine must not look like a module that hangs.
SECONDS_PER_FILE = 800
SECONDS_TO_BUILD = 25
SECONDS_PER_EXPORT = 300
MEMORY = 4 << 30
LEFT_OUT = {
    "tests",
    "test",
    "examples",
    "example",
    "docs",
    "scripts",
    "setup.py",
    "conftest.py",
    "build",
    "tutorials",
    "demo",
    "recipes",
    "egs",
}


@dataclass(frozen=True, slots=True)
class Collection:
    """A set of packages: where it is installed, its list, and the rows that the repository keeps."""

    home: Path
    listed: Path
    kept: Path
    environment: Path

    @property
    def sources(self) -> Path:
        return self.home / "src"

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    @property
    def rows(self) -> Path:
        return self.home / "outcomes.jsonl"

    def elsewhere(self, home: Path) -> Collection:
        """Packages that are unpacked below another folder's `src`, measured in the same environment."""
        return replace(self, home=home.absolute())


COLLECTIONS = {
    "research": Collection(
        RESEARCH_HOME, DATA / "research.txt", DATA / "collected.jsonl", RESEARCH_HOME / "venv"
    ),
    "packages": Collection(
        PACKAGES_HOME, DATA / "packages.txt", DATA / "constructed.jsonl", PACKAGES_HOME / "venv"
    ),
}


def in_child(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` returns, from a forked child; {"died": ...} where it does not come back in time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setpgid(0, 0)
        try:
            text = json.dumps(work())
        except BaseException as error:
            text = json.dumps({"died": f"{type(error).__name__}: {str(error)[:200]}"})
        with os.fdopen(writing, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(writing)
    chunks = []
    until = time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        data = os.read(reading, 1 << 16) if ready else None
        if not data:
            break
        chunks.append(data)
    os.close(reading)
    for sign in (child, -child):
        with contextlib.suppress(ProcessLookupError):
            os.kill(sign, signal.SIGKILL)
    os.waitpid(child, 0)
    text = b"".join(chunks).decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return {"died": "time limit" if data is None else "crashed"}


Candidate = tuple[str, str, tuple[int, int]]


def candidates(base: Path, tops: Iterable[str] = (".",)) -> list[Candidate]:
    """(file, class, its lines) of each class below `tops`, folders or files, that looks like a module.

    Their order is one that no one chose.
    """
    found: list[Candidate] = []
    paths = (
        path for top in tops for path in ([base / top] if top.endswith(".py") else (base / top).rglob("*.py"))
    )
    for path in sorted(path for path in paths if path.is_file()):
        file = path.relative_to(base).as_posix()
        if LEFT_OUT & set(file.split("/")):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
        except (SyntaxError, ValueError):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.bases and defines_forward(node, tree):
                found.append((file, node.name, (node.lineno, node.end_lineno or node.lineno)))
    return sorted(found, key=lambda item: hashlib.sha256(f"{item[0]}:{item[1]}".encode()).digest())


def defines_forward(node: ast.ClassDef, tree: ast.Module) -> bool:
    """Whether the class has a `forward`, or a base in the same file that has."""
    if any(isinstance(item, ast.FunctionDef) and item.name == "forward" for item in node.body):
        return True
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    others = [
        other
        for other in tree.body
        if isinstance(other, ast.ClassDef) and other.name in bases and other is not node
    ]
    return any(other.lineno < node.lineno and defines_forward(other, tree) for other in others)


def measure_class(base: Path, module: Any, name: str) -> dict[str, Any]:
    """Build one class, export it in both modes; {"skipped": why} where it could not be run in eager mode."""
    import torch

    from tests.real import construct, outside
    from tests.real.measure import measure

    cls = vars(module).get(name)
    if not (isinstance(cls, type) and issubclass(cls, torch.nn.Module)):
        return {"skipped": "no nn.Module"}
    built: construct.Built
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_TO_BUILD)
    try:
        built = construct.build(cls, construct.Budget())
    except construct.GaveUp as reason:
        return {"skipped": str(reason)}
    signal.setitimer(signal.ITIMER_PROF, 0)
    row: dict[str, Any] = {"init": built.init, "inputs": built.inputs, "stood_in": sorted(outside.stood_in)}
    for mode in ("non_strict", "strict"):
        strict = mode == "strict"
        export = functools.partial(measure, built.module, built.arguments, strict, base)
        outcome = in_child(export, SECONDS_PER_EXPORT)
        if "died" in outcome:
            return {"skipped": f"{mode} export: {outcome['died']}"}
        row[mode] = outcome
    return row


def measure_file(
    base: Path, package: str, file: str, classes: list[tuple[str, tuple[int, int]]], rows: Path
) -> str:
    """Import one file in this (child) process and measure its classes; rows are appended as they come."""
    from tests.real import outside

    try:
        module = outside.import_file(base, file)
    except BaseException as error:
        reason = f"import: {type(error).__name__}: {str(error)[:120]}"
        for name, _ in classes:
            append(rows, {"package": package, "file": file, "class": name, "skipped": reason})
        return reason
    for name, lines in classes:
        limit = 4 * SECONDS_TO_BUILD + 2 * SECONDS_PER_EXPORT
        found = in_child(functools.partial(measure_class, base, module, name), limit)
        if "died" in found:
            found = {"skipped": found["died"]}
        case = f"{file.removesuffix('.py').replace('/', '.')}.{name}"
        append(
            rows,
            {"package": package, "case": case, "file": file, "class": name, "class_lines": lines, **found},
        )
    return "done"


def append(path: Path, row: dict[str, Any]) -> None:
    # One write of one line to a file opened for appending: several processes share it.
    with path.open("a") as rows:
        rows.write(json.dumps(row) + "\n")


def measured(rows: Path) -> set[tuple[str, str, str]]:
    if not rows.exists():
        return set()
    read = (json.loads(line) for line in rows.read_text().splitlines())
    return {(row["package"], row["file"], row["class"]) for row in read}


def work_on(package: str, most: int, collection: Collection, rows: Path, only: str | None = None) -> None:
    """Measure up to `most` modules of one package, or those in `only`; runs in a process of its own."""
    from tests.real import outside

    base = collection.sources / package
    if only is None:
        mine = candidates(base)
    else:
        # Parsing whole packages takes longer than exporting a few of their modules.
        wanted = set(only.split(","))
        files = {item.rpartition(":")[0] for item in wanted}
        mine = [item for item in candidates(base, files) if f"{item[0]}:{item[1]}" in wanted]
    outside.make_ready(base, collection.sources)
    measure_some(package, base, mine, most, rows)


def measure_some(package: str, base: Path, mine: list[Candidate], most: int, rows: Path) -> None:
    """Append a row for each of the first `most` candidates that has none yet."""
    known = measured(rows)
    fresh = [item for item in mine if (package, item[0], item[1]) not in known]
    fresh = fresh[: max(0, most - (len(mine) - len(fresh)))]
    groups: dict[str, list[tuple[str, tuple[int, int]]]] = {}
    for file, name, lines in fresh:
        groups.setdefault(file, []).append((name, lines))
    if not groups:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for file, classes in groups.items():
            limit = SECONDS_PER_FILE + 30 * len(classes)
            ended = in_child(functools.partial(measure_file, base, package, file, classes, rows), limit)
            if isinstance(ended, dict):
                done = measured(rows)
                for name, _ in classes:
                    if (package, file, name) not in done:
                        note = {
                            "package": package,
                            "file": file,
                            "class": name,
                            "skipped": f"file: {ended['died']}",
                        }
                        append(rows, note)


def warm_up() -> None:
    """Import what exports import lazily, before any child is forked."""
    import torch

    torch.set_num_threads(1)
    for strict in (False, True):
        torch.export.export(torch.nn.ReLU(), (torch.rand(2),), strict=strict)
    torch._dynamo.reset()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, default=20, help="modules to try per package")
    parser.add_argument("--package", action="append", help="only this package (repeatable)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=3000.0, help="stop starting packages after this long"
    )
    parser.add_argument("--retry", action="store_true", help="try again what could not be imported or built")
    parser.add_argument("--publish", action="store_true", help="write the rows that the repository keeps")
    parser.add_argument("--set", choices=COLLECTIONS, default="research", help="which packages")
    parser.add_argument("--home", type=Path, help="packages unpacked in this folder's src/, with its rows")
    parser.add_argument("--rows", type=Path, help="append the rows to this file instead")
    parser.add_argument("--only", help="these FILE:CLASS, comma-separated")
    options = parser.parse_args()
    collection = COLLECTIONS[options.set]
    if options.home:
        collection = collection.elsewhere(options.home)
    rows = (options.rows or collection.rows).absolute()
    if options.publish and options.home:
        parser.error("--publish is for the listed packages: --home has no list of versions")
    if options.publish:
        publish(rows, collection)
        return 0
    if not collection.python.exists() or not collection.sources.exists():
        print(f"nothing to collect from: run `python scripts/install_real.py {options.set}`", file=sys.stderr)
        return 2
    if Path(sys.prefix) != collection.python.parent.parent:
        # The packages live in an environment of their own: go on there.
        os.execv(collection.python, [str(collection.python), "-m", "tests.real.collect", *sys.argv[1:]])
    if options.retry and rows.exists():
        again = ("import", "file", "out of time", "time limit", "crashed")
        read = rows.read_text().splitlines()
        kept = [line for line in read if not json.loads(line).get("skipped", "").startswith(again)]
        rows.write_text("".join(f"{line}\n" for line in kept))
    names = options.package or sorted(
        folder.name for folder in collection.sources.iterdir() if folder.is_dir()
    )
    waiting = [name for name in names if not name.startswith(".")]

    def work(name: str) -> None:
        work_on(name, options.most, collection, rows, options.only)

    run_all(waiting, work, rows, options.workers, options.seconds)
    return 0


def run_all(
    waiting: list[str], work: Callable[[str], None], rows: Path, workers: int, seconds: float
) -> None:
    """One child for each package, at most `workers` at a time; no new one after `seconds`."""
    warm_up()
    running: dict[int, str] = {}
    until = time.monotonic() + seconds
    while running or (waiting and time.monotonic() < until):
        while waiting and len(running) < workers and time.monotonic() < until:
            name = waiting.pop(0)
            child = os.fork()
            if child == 0:
                quiet_worker(functools.partial(work, name))
            running[child] = name
        done, _ = os.wait()
        name = running.pop(done)
        print(f"{name}: {counted(name, rows)}", flush=True)


def quiet_worker(work: Callable[[], None]) -> NoReturn:
    """Do the work of a forked child: nothing printed, nothing returned to the parent's code."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    try:
        work()
    finally:
        os._exit(0)


def publish(rows: Path, collection: Collection) -> None:
    """Write the modules measured in both modes, sorted, with their package's version and short messages."""
    versions = {
        name: version
        for line in collection.listed.read_text().splitlines()
        for name, _, version in [line.partition("==")]
    }
    kept = []
    for line in rows.read_text().splitlines():
        row = json.loads(line)
        if "strict" not in row:
            continue
        for mode in ("non_strict", "strict"):
            if "message" in row[mode]:
                row[mode]["message"] = shortened(row[mode]["message"])
        row["package"] = f"{row['package']}=={versions.get(row['package'], '?')}"
        kept.append(row)
    kept.sort(key=lambda row: (row["package"], row["file"], row["class_lines"]))
    collection.kept.write_text("".join(json.dumps(row) + "\n" for row in kept))
    print(f"{len(kept)} modules of {len({row['package'] for row in kept})} packages -> {collection.kept}")


def shortened(message: str) -> str:
    """torch's words without this machine's paths and addresses: they differ from run to run."""
    return re.sub(
        r"0x[0-9a-f]{6,}", "0x...", re.sub(r"(?<![\w.])/?[\w.\-/]*/(?:src|site-packages)/", "", message)
    )[:200]


def counted(package: str, rows: Path) -> str:
    read = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    mine = [row for row in read if row["package"] == package]
    ran = [row for row in mine if "strict" in row]
    failed = sum(row["strict"]["status"] == "fail" or row["non_strict"]["status"] == "fail" for row in ran)
    return f"{len(mine)} tried, {len(ran)} exported in both modes or failed to, {failed} of them fail"


if __name__ == "__main__":
    sys.exit(main())
