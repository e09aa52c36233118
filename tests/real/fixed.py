"""What mending does to real modules: both texts are constructed, run and exported, and compared.

`verdicts` copies a package, mends the file of each failing row there with one `exportlens check --fix --unsafe-fixes`,
and runs this file in the packages' own environment, once on the original and once on the copy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.corpus import MODES, Row, Sources

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600
# How deep objects in results are taken apart.
_DEEP = 6
UNCHANGED, EXPORTS, STILL_FAILS, DIFFERS, NOT_RUN = (
    "nothing mended",
    "exports and equals the original",
    "mended, and still fails",
    "differs from the original",
    "could not be run",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one failing module, and torch's words where it still fails."""

    row: Row
    outcome: str
    words: str = ""


def verdicts(rows: Iterable[Row], sources: Sources, python: Path) -> Iterator[Verdict]:
    """One verdict for each of `rows` that does not export; `python` has the packages' dependencies."""
    for row in map(sources.placed, rows):
        base = sources.base(row)
        if base is None or all(row.outcomes[mode].status != "fail" for mode in MODES):
            continue
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / row.distribution
            source = base if base.name == row.distribution else base / row.top
            shutil.copytree(source, copy if source is base else copy / row.top, dirs_exist_ok=True)
            yield _verdict(row, base, copy, sources.root, python)


def _verdict(row: Row, base: Path, copy: Path, root: Path, python: Path) -> Verdict:
    blamed = [row.outcomes[mode].file for mode in MODES if row.outcomes[mode].status == "fail"]
    files = sorted({str(copy / file) for file in [row.file, *blamed] if file and (copy / file).is_file()})
    command = [sys.executable, "-m", "exportlens", "check", *files, "--fix", "--unsafe-fixes", "-q"]
    subprocess.run([*command, "--mode", "both", "--exit-zero"], capture_output=True, check=False, cwd=copy)
    if all(
        (base / file).read_bytes() == Path(each).read_bytes()
        for each in files
        for file in [Path(each).relative_to(copy)]
    ):
        return Verdict(row, UNCHANGED)
    with tempfile.TemporaryDirectory() as folder:
        left = Path(folder) / "results.pt"
        before, after = (_measured(row, where, root, python, left) for where in (base, copy))
    if before.get("error") or (after.get("error") and not before.get("results")):
        return Verdict(row, NOT_RUN, str(before.get("error") or after.get("error")))
    if after.get("error"):
        return Verdict(row, DIFFERS, str(after["error"]))
    if not after["same"]:
        return Verdict(row, DIFFERS, after["words"])
    return Verdict(row, STILL_FAILS if after["words"] else EXPORTS, after["words"])


def _measured(row: Row, base: Path, root: Path, python: Path, left: Path) -> dict[str, Any]:
    """What this file says of one text, run on its own; the second one is compared with what the first has left."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        str(python),
        "-m",
        "tests.real.fixed",
        str(base),
        str(root),
        row.file,
        row.class_name,
        str(left),
    ]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment,
            cwd=tempfile.gettempdir(),
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        return dict(json.loads(lines[-1])) if lines else {"error": f"ended with {done.returncode}"}
    except subprocess.TimeoutExpired:
        return {"error": "time limit"}


def measure(base: Path, root: Path, file: str, name: str, left: Path) -> dict[str, Any]:
    """The results of two runs in eager mode, compared with those in `left` where there are some, and torch's words."""
    import torch

    from tests.real import construct, measure, outside

    outside.make_ready(base, root)
    cls = vars(outside.import_file(base, file))[name]
    built = construct.build(cls, construct.Budget(seconds=60))
    measure.seed(2)
    inputs = (built.arguments, measure.fresh(built.arguments))
    before = torch.load(left, weights_only=False) if left.exists() else None
    # Not every constructor fills the memory of what it makes: both texts are run with the numbers of the first.
    numbers = before["numbers"] if before is not None else _numbers(construct.renewed(cls, built.profile))

    def renewed() -> Any:
        return _with_numbers(construct.renewed(cls, built.profile), numbers)

    results: list[Any] = []
    for each in inputs:
        try:
            results.append([part for leaf in measure.run(renewed(), each) for part in _contents(leaf, 0)])
        except Exception:
            # A check in the graph raises another error than `raise` does.
            results.append(["raised"])
    if before is not None:
        left.unlink()
        same = all(measure.alike(one, other) for one, other in zip(before["results"], results, strict=True))
        words = []
        for strict in (True, False):
            torch._dynamo.reset()
            outcome = measure.measure(renewed(), built.arguments, strict, base)
            if outcome["status"] == "fail" or outcome["sound"] not in ("sound", "undecided"):
                words.append(f"strict={strict}: {outcome.get('message') or outcome['sound']}")
        return {"same": same, "words": " | ".join(words), "results": True}
    torch.save({"results": results, "numbers": numbers}, left)
    return {"results": True}


def _contents(value: Any, depth: int) -> list[Any]:
    """The tensors and numbers in `value`. A fix may register its class with torch, which then takes it apart in one text only."""
    if isinstance(value, dict):
        return [part for each in value.values() for part in _contents(each, depth)]
    if isinstance(value, list | tuple):
        return [part for each in value for part in _contents(each, depth)]
    if depth < _DEEP and not callable(value) and type(value).__name__ not in ("Tensor", "Parameter"):
        held = getattr(value, "__dict__", None)
        if held is not None:
            return [part for each in held.values() for part in _contents(each, depth + 1)]
    return [] if callable(value) else [value]


def _numbers(module: Any) -> dict[str, Any]:
    """What the parameters and buffers of `module` hold."""
    return {
        name: each.detach().clone()
        for name, each in (*module.named_parameters(), *module.named_buffers())
        if type(each).__name__ in ("Parameter", "Tensor")
    }


def _with_numbers(module: Any, numbers: dict[str, Any]) -> Any:
    """`module` with `numbers` in its parameters and buffers, where they have the same names and shapes."""
    for name, each in (*module.named_parameters(), *module.named_buffers()):
        if name in numbers and numbers[name].shape == each.shape:
            each.detach().copy_(numbers[name])
    return module


if __name__ == "__main__":
    given = sys.argv[1:]
    try:
        answer = measure(Path(given[0]), Path(given[1]), given[2], given[3], Path(given[4]))
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    print(json.dumps(answer))
