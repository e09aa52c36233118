"""Does a fix hold? The files as they are and with fixed texts, run and exported in the worker."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exportlens.export.called import counterparts
from exportlens.export.report import Failure
from exportlens.export.request import ExportRequest
from exportlens.export.session import Listen, Session, default_mode, failure_of, silent, worker_words
from exportlens.source.files import read_source

Texts = Mapping[Path, str]
"""Files by their absolute paths, and what stands in them."""

OF_THE_FIX = "the fixed model"
"""How the worker begins a failure that the original does not have."""


@dataclass
class VerifyReport:
    """The verdict on one fix.

    `equal` says whether the fixed model equals the original in eager on every case; `modes` holds, per mode,
    {ok, failure, cases} of the fixed model's export. `blame` is the worker's, on lines of the fixed text; `left_out`
    names the outputs that torch cannot take apart and that only the original has. A failure may be "incomparable",
    beside the kinds of a Report: equality with the original would say nothing of the fix.
    """

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

    def holds(self, original: Texts, fixed: Texts) -> bool | None:
        """Whether the change from the texts `original` of some files to `fixed` holds. None where this says nothing of
        it: the original cannot be run or compared with, the time was up, or what the export refuses lies elsewhere.
        """
        if self.verified:
            return True
        if self.failure is not None:
            of_the_fix = self.failure.kind == "mismatch" or self.failure.message.startswith(OF_THE_FIX)
            return False if of_the_fix else None
        if not self.equal:
            return False
        failures = [mode["failure"] for mode in self.modes.values() if not mode["ok"]]
        refused = {place_of(blame) for failure in failures for blame in failure.get("blame") or []}
        changed = {
            (path, line) for path, text in fixed.items() for line in _changed_lines(original[path], text)
        }
        return False if refused & changed else None

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


def place_of(blame: dict[str, Any]) -> tuple[Path, int] | None:
    """The file and the line (from 1) that a place at fault names."""
    frame = blame.get("frame") or {}
    return (Path(frame["file"]), int(frame["line"])) if frame.get("file") and frame.get("line") else None


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
    fixed: Texts,
    *,
    wrap: bool = True,
    memory: Path | None = None,
    progress: Listen = silent,
) -> VerifyReport:
    """Compare the model of `request`, which names a file, with the same model where the files of `fixed` have the texts given
    there, and export the latter; where the texts are those of the files, export that.

    A model that its file's own export call gives is taken from there in the fixed text, too, with what the call says
    now. `wrap` makes a Module of a callable, which torch.export itself would not take. What a slow original gives is kept
    in the folder `memory`, for the next fix of the same model. Weights and seeds are the same
    on both sides. The fixed texts are written beside no user file: they lie in a folder of their own, and are imported
    in the place of the files. Raises ValueError for a model that is named by package, UnreadableSource for
    a file, WorkerUnusable as `Session.run` does.
    """
    file = request.file
    if file is None:
        raise ValueError(f"only a model named by file can be verified, not {request.model}")
    sources = {path: read_source(path) for path in fixed}
    changed = {path: text for path, text in fixed.items() if text != sources[path].text}
    with tempfile.TemporaryDirectory(prefix="exportlens-fixed-") as scratch:
        places: dict[str, str] = {}
        for number, (path, text) in enumerate(changed.items()):
            place = Path(scratch) / str(number) / path.name
            place.parent.mkdir()
            place.write_bytes(text.encode(sources[path].encoding, "replace"))
            places[str(path)] = str(place)
        facts = await session.start()
        words = worker_words(request)
        words["homes"] = [*words["homes"], str(scratch)]
        words.update(
            op="verify",
            fixed_files=places,
            counterparts=counterparts(file, sources[file].text, changed[file]) if file in changed else {},
            modes=list(request.modes(default_mode(facts["torch"]))),
            wrap=wrap,
            memory=None if memory is None else str(memory),
        )
        ended = await session.exclusively(words, "verify", progress)
    ended.parts = _placed(ended.parts, {place: path for path, place in places.items()})
    parts = ended.parts
    found = VerifyReport(
        failure=failure_of(ended, request.timeout, request.memory_limit),
        cases=parts.get("eager", []),
        lost_weights=parts.get("lost_weights", []),
        left_out=parts.get("left_out", []),
        blame=(parts.get("failure") or {}).get("blame") or [],
    )
    compared = not changed or bool(found.cases)
    found.equal = compared and all(case["status"] in ("equal", "skipped") for case in found.cases)
    found.modes = {m: parts[f"export {m}"] for m in words["modes"] if f"export {m}" in parts}
    exported = len(found.modes) == len(words["modes"]) and all(mode["ok"] for mode in found.modes.values())
    found.verified = found.failure is None and found.equal and exported
    return found


def _placed(told: Any, originals: Mapping[str, str]) -> Any:
    """What the worker told, with the user's files in the place of those that have their fixed texts."""
    if isinstance(told, str):
        for place, path in originals.items():
            told = told.replace(place, path)
        return told
    if isinstance(told, dict):
        return {key: _placed(value, originals) for key, value in told.items()}
    return [_placed(value, originals) for value in told] if isinstance(told, list) else told


def in_both_modes(request: ExportRequest) -> ExportRequest:
    """The request, asking for both modes."""
    return replace(request, mode="both")
