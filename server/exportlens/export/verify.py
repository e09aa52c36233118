"""Does a fix hold? The original and the fixed text of one file, run and exported in the worker."""

from __future__ import annotations

import difflib
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exportlens.export.called import counterparts
from exportlens.export.report import Failure
from exportlens.export.request import ExportRequest
from exportlens.export.session import Listen, Session, default_mode, failure_of, silent, worker_words
from exportlens.source.files import SourceFile, read_source

OF_THE_FIX = "the fixed model"
"""How the worker begins a failure that the original does not have."""


@dataclass
class VerifyReport:
    """The verdict on one fix in the file at `path`.

    `equal` says whether the fixed model equals the original in eager on every case; `modes` holds, per mode,
    {ok, failure, cases} of the fixed model's export. `blame` is the worker's, on lines of the fixed text; `left_out`
    names the outputs that torch cannot take apart and that only the original has. A failure may be "incomparable",
    beside the kinds of a Report: equality with the original would say nothing of the fix.
    """

    path: Path
    verified: bool = False
    equal: bool = False
    failure: Failure | None = None
    modes: dict[str, dict[str, Any]] = field(default_factory=dict)
    cases: list[dict[str, Any]] = field(default_factory=list)
    lost_weights: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    blame: list[dict[str, Any]] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """Why the fix is not verified, in one sentence; empty where it is."""
        if self.failure is not None:
            return self.failure.message
        for mode, result in self.modes.items():
            if not result["ok"]:
                return f"{mode}: {result['failure']['message']}"
        return "" if self.verified else "nothing was exported"

    def holds(self, original: str, fixed: str) -> bool | None:
        """Whether the change from the text `original` to `fixed` holds. None where this says nothing of it: the
        original cannot be run or compared with, the time was up, or what the export refuses lies elsewhere.
        """
        if self.verified:
            return True
        if self.failure is not None:
            of_the_fix = self.failure.kind == "mismatch" or self.failure.message.startswith(OF_THE_FIX)
            return False if of_the_fix else None
        if not self.equal:
            return False
        failures = [mode["failure"] for mode in self.modes.values() if not mode["ok"]]
        refused = {line_in(blame, self.path) for failure in failures for blame in failure.get("blame") or []}
        return False if refused & _changed_lines(original, fixed) else None

    def to_json(self) -> dict[str, Any]:
        return {
            "verified": self.verified,
            "equal": self.equal,
            "failure": self.failure.to_json() if self.failure else None,
            "modes": self.modes,
            "cases": self.cases,
            "lost_weights": self.lost_weights,
            "left_out": self.left_out,
            "reason": self.reason,
        }


def line_in(blame: dict[str, Any], path: Path) -> int | None:
    """The line (from 1) that a place at fault names in the file, or in the copy that holds its fixed text."""
    frame = blame.get("frame") or {}
    ours = Path(frame.get("file") or "").name in (path.name, f"{path.stem}_fixed.py")
    return int(frame["line"]) if ours and frame.get("line") else None


def _changed_lines(original: str, fixed: str) -> set[int]:
    """The lines (from 1) of `fixed` that `original` does not have."""
    matcher = difflib.SequenceMatcher(None, original.splitlines(), fixed.splitlines(), False)
    return {
        line
        for kind, _, _, first, past in matcher.get_opcodes()
        if kind != "equal"
        for line in range(first + 1, past + 1)
    }


async def verify_fix(
    session: Session,
    request: ExportRequest,
    fixed_text: str,
    *,
    wrap: bool = True,
    memory: Path | None = None,
    progress: Listen = silent,
) -> VerifyReport:
    """Compare the model of `request` (a `FILE.py:name`) with the same model in `fixed_text`, and export the
    latter; where the text is that of the file, export that.

    A model that the file's own export call gives is taken from there in the fixed text, too, with what the call says
    now. `wrap` makes a Module of a callable, which torch.export itself would not take. What a slow original gives is kept
    in the folder `memory`, for the next fix of the same model. Weights and seeds are the same
    on both sides. The fixed text is written beside no user file: it lives in a folder of its own, whose sibling modules
    are found in the original's folder. Raises ValueError for a model that is named by package, UnreadableSource for
    its file, WorkerUnusable as `Session.run` does.
    """
    file = request.file
    if file is None:
        raise ValueError(f"only a model named by file can be verified, not {request.model}")
    source = read_source(file)
    original = source.text
    with tempfile.TemporaryDirectory(prefix="exportlens-fixed-") as scratch:
        same = fixed_text == original
        fixed_file = None if same else _place_beside(source, fixed_text, Path(scratch))
        facts = await session.start()
        words = worker_words(request)
        words["homes"] = [*words["homes"], str(scratch)]
        words.update(
            op="verify",
            fixed_model=None if fixed_file is None else str(fixed_file),
            counterparts={} if same else counterparts(file, original, fixed_text),
            modes=list(request.modes(default_mode(facts["torch"]))),
            wrap=wrap,
            memory=None if memory is None else str(memory),
        )
        ended = await session.exclusively(words, "verify", progress)
    parts = ended.parts
    found = VerifyReport(
        file,
        failure=failure_of(ended, request.timeout, request.memory_limit),
        cases=parts.get("eager", []),
        lost_weights=parts.get("lost_weights", []),
        left_out=parts.get("left_out", []),
        blame=(parts.get("failure") or {}).get("blame") or [],
    )
    compared = same or bool(found.cases)
    found.equal = compared and all(case["status"] in ("equal", "skipped") for case in found.cases)
    found.modes = {m: parts[f"export {m}"] for m in words["modes"] if f"export {m}" in parts}
    exported = len(found.modes) == len(words["modes"]) and all(mode["ok"] for mode in found.modes.values())
    found.verified = found.failure is None and found.equal and exported
    return found


def _place_beside(source: SourceFile, text: str, scratch: Path) -> Path:
    """The fixed text as a file of the same encoding that imports as the original does: a packaged file keeps its package around
    it.

    The package is linked (copied where links are not allowed) into the scratch folder under another top name.
    """
    file, package = source.path, list[str]()
    folder = file.parent
    while (folder / "__init__.py").exists():
        package.insert(0, folder.name)
        folder = folder.parent
    if not package:
        fixed = scratch / f"{file.stem}_fixed.py"
        fixed.write_bytes(text.encode(source.encoding, "replace"))
        return fixed
    here, there = folder, scratch
    for depth, part in enumerate(package):
        here, there = here / part, there / (f"{part}_fixed" if depth == 0 else part)
        there.mkdir()
        following = package[depth + 1] if depth + 1 < len(package) else file.name
        for item in here.iterdir():
            if item.name in (following, "__pycache__"):
                continue
            try:
                (there / item.name).symlink_to(item)
            except OSError:
                (shutil.copytree if item.is_dir() else shutil.copy2)(item, there / item.name)
    fixed = there / file.name
    fixed.write_bytes(text.encode(source.encoding, "replace"))
    return fixed


def in_both_modes(request: ExportRequest) -> ExportRequest:
    """The request, asking for both modes."""
    return replace(request, mode="both")
