"""Repair: export, blame, the fix of the rule that knows that cause, and again, until the model exports."""

from __future__ import annotations

import asyncio
import difflib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exportlens.export.request import ExportRequest
from exportlens.export.session import Session
from exportlens.export.verify import VerifyReport, verify_fix
from exportlens.finding import Applicability, Finding

MOST_STEPS = 30
Diagnose = Callable[[Path, str], list[Finding]]
Apply = Callable[[str, Finding], str]
# (text, torch's words, line from 0) -> (code of the rule, what is done, new text): what only an export shows.
KnownCause = Callable[[str, str, int], tuple[str, str, str] | None]


@dataclass(frozen=True)
class Step:
    """One round: what stopped the export (`reason`, on `line` from 1 where it is known), and the fix that
    was applied."""

    reason: str
    line: int | None
    code: str = ""
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"reason": self.reason, "line": self.line, "code": self.code, "fix": self.fix}


@dataclass
class Repair:
    """How far a repair came. `repaired` says that the text exports and equals eager; `text` is the file
    after all steps."""

    model: str
    path: Path
    original: str
    text: str
    repaired: bool = False
    steps: list[Step] = field(default_factory=list)
    reason: str = ""
    refusals: list[str] = field(default_factory=list)
    could_run: bool = True
    rebased: bool = False

    @property
    def changed(self) -> bool:
        return self.text != self.original

    def diff(self, name: str | None = None) -> str:
        """One unified diff from the file as it is to what it would become."""
        shown = name or self.path.name
        lines = difflib.unified_diff(
            self.original.splitlines(keepends=True),
            self.text.splitlines(keepends=True),
            shown,
            f"{shown} (repaired)",
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "repaired": self.repaired,
            "outputs_changed": self.rebased,
            "reason": self.reason,
            "steps": [step.to_json() for step in self.steps],
            "refusals": self.refusals,
            "diff": self.diff(),
        }


async def repair_model(
    session: Session,
    request: ExportRequest,
    diagnose: Diagnose,
    apply: Apply,
    known_cause: KnownCause,
    tell: Callable[[Step], None] = lambda step: None,
) -> Repair:
    """Repair the model of `request`, which names a file. Nothing is written: the caller decides on
    `Repair.text`.

    `diagnose` gives the findings of a text at the file's path, with their fixes; `apply` the text with one
    finding's fix. Raises ValueError for a model that is not named by file, WorkerUnusable as `Session.run`
    does.
    """
    file = request.file
    if file is None:
        raise ValueError(f"only a model named by file can be repaired, not {request.model}")
    with open(file, encoding="utf-8", newline="") as stream:
        original = stream.read()
    result = Repair(request.model, file, original, original)
    seen = {original}
    for _ in range(MOST_STEPS):
        report = await _verified(session, request, result)
        result.reason = report.reason
        if report.verified:
            result.repaired = True
            return result
        if report.failure is not None and report.failure.kind in ("import", "construct", "inputs"):
            result.could_run = result.changed
            if not result.changed:
                return result
        line = _blamed_line(report)
        if report.failure is not None and report.failure.kind == "mismatch" and not report.equal:
            seen_by_torch = await _export_of(session, request, result.text)
            if seen_by_torch is not None:
                message, line = seen_by_torch
                known = known_cause(result.text, message, line - 1)
                if known is not None and known[2] not in seen:
                    code, words, text = known
                    result.steps.append(Step(message, line, code, words))
                    tell(result.steps[-1])
                    result.text = text
                    seen.add(text)
                    result.rebased = True
                    continue
        findings = [each for each in diagnose(file, result.text) if each.path == file]
        chosen = _choose(findings, line, result.text, apply, seen)
        if chosen is None:
            result.refusals = _refusals(findings)
            result.steps.append(Step(report.reason, line))
            tell(result.steps[-1])
            return result
        finding, text = chosen
        assert finding.fix is not None
        result.steps.append(Step(report.reason, line, finding.code, finding.fix.message))
        tell(result.steps[-1])
        result.text = text
        seen.add(text)
    result.reason = f"{result.reason} (after {MOST_STEPS} steps)"
    return result


def repair(
    interpreter: Path,
    request: ExportRequest,
    diagnose: Diagnose,
    apply: Apply,
    known_cause: KnownCause,
    tell: Callable[[Step], None] = lambda step: None,
) -> Repair:
    """`repair_model` for callers without an event loop, in a session of its own."""

    async def whole() -> Repair:
        session = Session(interpreter)
        try:
            return await repair_model(session, request, diagnose, apply, known_cause, tell)
        finally:
            await session.close()

    return asyncio.run(whole())


async def _verified(session: Session, request: ExportRequest, result: Repair) -> VerifyReport:
    """The text against the original; where a step left an output out (`rebased`), against itself in eager."""
    if not result.rebased:
        return await verify_fix(session, request, result.text)
    with tempfile.TemporaryDirectory(prefix="exportlens-repair-") as scratch:
        return await verify_fix(session, _elsewhere(request, result.text, Path(scratch)), result.text)


async def _export_of(session: Session, request: ExportRequest, text: str) -> tuple[str, int] | None:
    """What torch.export itself says of `text`, and on which line (from 1)."""
    with tempfile.TemporaryDirectory(prefix="exportlens-repair-") as scratch:
        moved = _elsewhere(request, text, Path(scratch))
        report = await session.run(replace(moved, targets=()), lambda progress: None)
    for finding in report.findings:
        if finding.path == moved.file:
            return finding.data.get("torch", finding.message), finding.range.start.line + 1
    return None


def _elsewhere(request: ExportRequest, text: str, folder: Path) -> ExportRequest:
    """The same request for a copy of the file that holds `text`."""
    file = request.file
    assert file is not None
    copy = folder / file.name
    copy.write_text(text, encoding="utf-8", newline="")
    return replace(request, model=f"{copy}:{request.name}")


def _blamed_line(report: VerifyReport) -> int | None:
    """The line of the fixed text that torch's failure leads to, from 1."""
    for blame in report.blame:
        frame = blame.get("frame")
        if frame and frame.get("line"):
            return int(frame["line"])
    return None


def _choose(
    findings: list[Finding], line: int | None, text: str, apply: Apply, seen: set[str]
) -> tuple[Finding, str] | None:
    """The fix for the blamed line before all others; errors before warnings; never a text that was there
    before."""

    def order(finding: Finding) -> tuple[bool, bool, str, Any]:
        on_line = line is not None and finding.range.start.line <= line - 1 <= finding.range.end.line
        return (not on_line, finding.severity.value != "error", finding.severity.value, finding.range)

    for finding in sorted(findings, key=order):
        if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY_ONLY:
            continue
        if finding.severity.value == "information":
            continue
        mended = apply(text, finding)
        if mended not in seen:
            return finding, mended
    return None


def _refusals(findings: list[Finding]) -> list[str]:
    return [
        f"line {each.range.start.line + 1}: {each.code}: {note}"
        for each in findings
        for note in each.notes
        if note.startswith("No fix offered")
    ]
