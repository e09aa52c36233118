"""Confirms the four tutorial models on every target that is installed here, and writes docs/targets.md.

`python scripts/measure_targets.py`, after `make targets`. The models are those of examples/tutorial, the two that
do not export as `exportlens repair` leaves them. Results come one JSON line each to artifacts/targets/results.jsonl, so that a run that
was ended goes on where it was; `--anew` starts over.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXPORTLENS = Path(sys.executable).with_name("exportlens")
OUTPUT = ROOT / "artifacts" / "targets"
PAGE = ROOT / "docs" / "targets.md"
MODELS = {
    "image captioning": "image_captioning.py:Captioner",
    "promptable segmentation": "promptable_segmentation.py:ImagePredictor.predict",
    "speech recognition": "speech_recognition.py:Transcriber",
    "video classifier": "video_classifier.py:VideoClassifier",
}
FAILING = ("promptable_segmentation.py", "speech_recognition.py")
"""The files whose models do not export as they are written: `exportlens repair` mends them first."""
TARGETS = {
    "": ("torch", "aoti-cpu"),
    "executorch": ("executorch-portable", "executorch-xnnpack", "executorch-vulkan", "executorch-coreml"),
    "onnxruntime": ("onnxruntime-cpu",),
    "openvino": ("openvino-cpu",),
    "iree": (
        "iree-llvm-cpu",
        "iree-cuda",
        "iree-rocm",
        "iree-vulkan",
        "iree-metal",
        "iree-android",
        "iree-riscv64",
    ),
    "tvm": ("tvm-llvm",),
    "coreml": ("coreml",),
    "litert": ("litert",),
}
"""Which targets the environment of each extra has (scripts/set_up_targets.py); the first is the project's own."""
INTRODUCTION = """\
Measured with torch {torch} on two cores by `python scripts/measure_targets.py`, which writes this page, after `make
targets`. The models are those of `examples/tutorial`; segmentation and speech recognition, which do not export as they
are written, as `exportlens repair` leaves them. A cell has the seconds that one target took (its process, lowering,
saving, running on every case) and the largest absolute difference to eager over all cases; or the kind of the failure,
whose message stands below the table. Each process had a limit of some minutes, and other work ran on the machine at the
same time, some of it five times what two cores can do: the seconds are upper bounds that compare with each other only
roughly, and a timeout is no refusal."""


def interpreter(extra: str) -> Path:
    """The Python of an extra's environment."""
    return ROOT / ".tools" / f"targets-{extra}" / "bin" / "python" if extra else Path(sys.executable)


def exportable(model: str) -> str:
    """A copy of the model's file in which it exports, as FILE:NAME."""
    file, _, name = model.partition(":")
    copy = OUTPUT / "models" / file
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        (copy.parent / "pyproject.toml").touch()  # a project of its own: nothing above it is looked at
        shutil.copy(ROOT / "examples" / "tutorial" / file, copy)
        if file in FAILING:
            command = [str(EXPORTLENS), "repair", f"{copy}:{name}", "--write", "--output-format", "json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            copy.with_suffix(".repair.json").write_text(done.stdout or done.stderr)
    listed = subprocess.run(
        [str(EXPORTLENS), "models", str(copy), "--output-format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    models = json.loads(listed.stdout)["models"]
    called = [m["name"] for m in models if any("export call" in p["source"] for p in m["proposals"])]
    return f"{copy}:{called[-1] if called else name}"


def confirm(model: str, targets: list[str], python: Path, seconds: float) -> dict[str, Any]:
    """The report of one export to these targets of one environment; each of its processes has `seconds`.

    Raises RuntimeError with what was printed where there is no report.
    """
    words = ["export", model, "--output-format", "json", "--timeout", str(seconds)]
    words += ["--output", str(OUTPUT / "artifacts")]
    for target in targets:
        words += ["--target", target, "--target-python", f"{target}={python}"]
    done = subprocess.run([str(EXPORTLENS), *words], capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"exporting {model} gave no report:\n{done.stderr[-2000:]}") from None
    return report


def versions(extra: str, targets: tuple[str, ...]) -> dict[str, str]:
    """What each target runs with, by its own probe."""
    words = ["targets", "--python", str(interpreter(extra)), "--output-format", "json"]
    done = subprocess.run([str(EXPORTLENS), *words], capture_output=True, text=True, check=True)
    return {t["name"]: t["message"] for t in json.loads(done.stdout)["targets"] if t["name"] in targets}


def known_rows() -> list[dict[str, Any]]:
    """What was measured so far."""
    file = OUTPUT / "results.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def measured(anew: bool, seconds: float) -> list[dict[str, Any]]:
    """Every row that is known, after the missing ones were measured, environment by environment."""
    file = OUTPUT / "results.jsonl"
    if anew:
        shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    rows = known_rows()
    known = {(row["title"], row["target"]["name"]) for row in rows}
    for title, model in MODELS.items():
        for extra, targets in TARGETS.items():
            wanted = [target for target in targets if (title, target) not in known]
            if not wanted:
                continue
            if not interpreter(extra).exists():
                print(f"{extra}: not installed (make targets)", flush=True)
                continue
            report = confirm(exportable(model), wanted, interpreter(extra), seconds)
            for target in report["targets"]:
                row = {
                    "title": title,
                    "target": target,
                    "failure": report["failure"],
                    "torch": report["torch"],
                }
                row["comparison"] = report["comparison"]
                rows.append(row)
                with file.open("a") as results:
                    results.write(json.dumps(row) + "\n")
                print(f"{title}, {target['name']}: {cell(row)}", flush=True)
    return rows


def cell(row: dict[str, Any]) -> str:
    """What the table says of one model on one target."""
    target = row["target"]
    if target["status"] == "ok":
        error = target["max_abs_error"]
        run = f"{error:.0e}" if error is not None else "lowered, not run here"
        return f"{target['seconds']:.0f} s, {run}"
    failure = target["failure"] or row["failure"] or {"kind": target["status"]}
    return f"{failure['kind']}"


def page(rows: list[dict[str, Any]], found: dict[str, str]) -> Iterator[str]:
    """docs/targets.md, line by line."""
    by_place = {(row["title"], row["target"]["name"]): row for row in rows}
    torch = next((row["torch"] for row in rows if row["torch"]), "?")
    yield "# The tutorial's models on the targets"
    yield ""
    yield INTRODUCTION.format(torch=torch)
    yield ""
    yield f"| target | {' | '.join(MODELS)} |"
    yield f"|---{'|---' * len(MODELS)}|"
    names = [target for targets in TARGETS.values() for target in targets]
    present = [name for name in names if any((title, name) in by_place for title in MODELS)]
    for name in present:
        cells = [
            cell(by_place[title, name]) if (title, name) in by_place else "not measured" for title in MODELS
        ]
        yield f"| {name} | {' | '.join(cells)} |"
    failed = []
    for name in present:
        for title in MODELS:
            row = by_place.get((title, name))
            failure = row and (
                row["target"]["failure"] or (row["failure"] if row["target"]["status"] != "ok" else None)
            )
            if failure:
                said = " ".join(str(failure["message"]).replace(str(ROOT), "").split())
                failed.append(f"- {name}, {title}, at {failure['stage']}: {said[:400].replace('|', '/')}")
    if failed:
        yield from ("", "## What failed", "", *failed)
    yield ""
    yield "## With what"
    yield ""
    for name in present:
        if name in found:
            yield f"- {name}: {found[name].replace(str(ROOT), '.')}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anew", action="store_true", help="forget what was measured before")
    parser.add_argument("--timeout", type=float, default=900, help="seconds that each process may take")
    parser.add_argument(
        "--page", action="store_true", help="write the page from what is known, measure nothing"
    )
    given = parser.parse_args()
    rows = known_rows() if given.page else measured(given.anew, given.timeout)
    found: dict[str, str] = {}
    for extra, targets in TARGETS.items():
        if interpreter(extra).exists():
            found |= versions(extra, targets)
    PAGE.write_text("\n".join(page(rows, found)) + "\n", encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
