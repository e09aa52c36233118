"""Repair: export, blame, the fix of the rule that knows that cause, and again, until the model exports."""

from __future__ import annotations

import asyncio
import difflib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from exportlens.export.called import Exported, exported_models
from exportlens.export.request import BOTH_MODES, ExportRequest
from exportlens.export.session import Session
from exportlens.export.verify import VerifyReport, line_in, verify_fix
from exportlens.finding import Applicability, Finding
from exportlens.source.files import read_source

MOST_STEPS = 30
_CANNOT_RUN = ("import", "construct", "inputs", "eager", "unavailable")
_ENDED = ("timeout", "memory", "cancelled")


class Tools(Protocol):
    """What a repair asks of those who know rules and rewrites."""

    def diagnose(self, path: Path, text: str) -> list[Finding]:
        """The findings of `text` as the content of `path`, with their fixes."""

    def apply(self, text: str, finding: Finding) -> str:
        """The text with the finding's fix."""

    def other_mode(self, text: str, strict: bool, line: int) -> KnownCause | None:
        """The export call on `line` (from 0) with the only mode that takes the model."""

    def known_causes(self, text: str, words: str, line: int | None) -> Iterator[KnownCause]:
        """What only an export shows: the ways out that torch's `words` at `line` (from 0) lead to, best first."""


@dataclass(frozen=True, slots=True)
class KnownCause:
    """A way out: the rule that has this cause, what is done about it, and the text after that."""

    code: str
    fix: str
    text: str


@dataclass(frozen=True)
class Step:
    """One round: what stopped the export (`reason`, on `line` from 1 where it is known), and the fix that
    was applied; `withdrawn` says why that was taken back."""

    reason: str
    line: int | None
    code: str = ""
    fix: str = ""
    withdrawn: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "reason": self.reason,
            "line": self.line,
            "code": self.code,
            "fix": self.fix,
            "withdrawn": self.withdrawn,
        }


@dataclass
class Repair:
    """How far a repair came. `repaired` says that the text exports and equals eager; `text` is the file
    after all steps that held; `left_out` names the outputs that a step left out, `elsewhere` the errors of the model in
    other files, which have fixes: path, line (from 1), and what is wrong."""

    model: str
    path: Path
    original: str
    text: str
    repaired: bool = False
    steps: list[Step] = field(default_factory=list)
    reason: str = ""
    refusals: list[str] = field(default_factory=list)
    could_run: bool = True
    left_out: list[str] = field(default_factory=list)
    elsewhere: list[tuple[Path, int, str]] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return self.text != self.original

    @property
    def fixes(self) -> int:
        """How many fixes were applied and kept."""
        return sum(1 for step in self.steps if step.fix and not step.withdrawn)

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
            "left_out": self.left_out,
            "reason": self.reason,
            "steps": [step.to_json() for step in self.steps],
            "refusals": self.refusals,
            "elsewhere": [
                {"filename": str(path), "row": line, "message": words} for path, line, words in self.elsewhere
            ],
            "diff": self.diff(),
        }


async def repair_model(
    session: Session,
    request: ExportRequest,
    tools: Tools,
    tell: Callable[[Step], None] = lambda step: None,
) -> Repair:
    """Repair the model of `request`, which names a file; without a mode it has to export in the one that the file's
    export call names, else in both. Nothing is written: the caller decides on
    `Repair.text`.

    Raises ValueError for a model that is not named by file, UnreadableSource for its file, WorkerUnusable as `Session.run` does.
    """
    file = request.file
    if file is None:
        raise ValueError(f"only a model named by file can be repaired, not {request.model}")
    original = read_source(file).text
    with tempfile.TemporaryDirectory(prefix="exportlens-repair-") as memory:
        result = Repair(request.model, file, original, original)
        await _Work(session, request, tools, tell, result, Path(memory)).run()
    return result


def repair(
    interpreter: Path,
    request: ExportRequest,
    tools: Tools,
    tell: Callable[[Step], None] = lambda step: None,
) -> Repair:
    """`repair_model` for callers without an event loop, in a session of its own."""

    async def whole() -> Repair:
        session = Session(interpreter)
        try:
            return await repair_model(session, request, tools, tell)
        finally:
            await session.close()

    return asyncio.run(whole())


class _Work:
    """One repair: the text so far, and every text that was there before."""

    def __init__(
        self,
        session: Session,
        request: ExportRequest,
        tools: Tools,
        tell: Callable[[Step], None],
        result: Repair,
        memory: Path,
    ) -> None:
        self._session = session
        self._request = request
        self._tools = tools
        self._tell = tell
        self._seen = {result.original}
        self._memory = memory
        self.result = result

    async def run(self) -> None:
        """Step by step, until the text is verified and nothing that its own export call breaks is left."""
        result = self.result
        report = await self._verified(result.text)
        result.reason = report.reason
        if report.failure is not None and report.failure.kind in (*_CANNOT_RUN, *_ENDED):
            result.could_run = report.failure.kind in _ENDED
            return
        for _ in range(MOST_STEPS):
            candidates = self._candidates(report)
            step = next(candidates, None)
            while step is not None:
                self._seen.add(step.text)
                tried = await self._verified(step.text)
                done = Step(
                    report.reason or "the program is used with other sizes than it was exported for",
                    _blamed_line(report, result.path),
                    step.code,
                    step.fix,
                )
                if tried.holds(result.text, step.text) is False or (report.verified and not tried.verified):
                    done = replace(done, withdrawn=tried.reason)
                self._note(done)
                if not done.withdrawn:
                    break
                step = next(candidates, None)
            if step is None:
                break
            result.text, report = step.text, tried
            result.reason, result.left_out = report.reason, report.left_out
        result.repaired = report.verified
        if not report.verified:
            findings = self._tools.diagnose(result.path, result.text)
            result.refusals = _refusals([f for f in findings if f.path == result.path])
            calls = self._export_calls(result.text)
            result.elsewhere = [
                (each.path, each.range.start.line + 1, f"{each.code}: {each.message}")
                for each in findings
                if each.path != result.path
                and each.severity.value == "error"
                and each.fix is not None
                and self._concerns(each, calls)
            ]
            self._note(Step(report.reason, _blamed_line(report, result.path)))

    def _note(self, step: Step) -> None:
        self.result.steps.append(step)
        self._tell(step)

    async def _verified(self, text: str) -> VerifyReport:
        request = self._request
        if request.mode is None:
            said = {call.strict for call in self._export_calls(text)}
            strict = said.pop() if len(said) == 1 else None
            mode = BOTH_MODES if strict is None else "strict" if strict else "non-strict"
            request = replace(request, mode=mode)
        # As it stands: that torch.export does not take a bare function is one of the things to be repaired.
        return await verify_fix(self._session, request, text, wrap=False, memory=self._memory)

    def _candidates(self, report: VerifyReport) -> Iterator[KnownCause]:
        """What to try next, best first: the fix for the blamed line, those for the export call, what torch's own
        words lead to, the fixes of the model's other errors, then of its warnings, then the one mode that takes it.
        A verified text has only the errors of its export call left.
        """
        result = self.result
        findings = [
            each for each in self._tools.diagnose(result.path, result.text) if each.path == result.path
        ]
        calls = self._export_calls(result.text)
        mine = [each for each in findings if self._concerns(each, calls)]
        if report.verified:
            yield from self._fixes(
                [each for each in mine if each.severity.value == "error" and _on_call(each, calls)]
            )
            return
        line = _blamed_line(report, result.path)
        yield from self._fixes([each for each in findings if _covers(each, line)])
        errors = [each for each in mine if each.severity.value == "error"]
        yield from self._fixes([each for each in errors if _on_call(each, calls)])
        for words, at in _torchs_words(report, result.path):
            for cause in self._tools.known_causes(result.text, words, None if at is None else at - 1):
                if cause.text not in self._seen:
                    yield cause
        yield from self._fixes(errors)
        yield from self._fixes([each for each in mine if each.severity.value == "warning"])
        yield from self._one_mode(report, calls)

    def _fixes(self, findings: list[Finding]) -> Iterator[KnownCause]:
        gravest_first = sorted(findings, key=lambda each: (each.severity.value != "error", each.sort_key()))
        for finding in gravest_first:
            fix = finding.fix
            if (
                fix is None
                or fix.applicability is Applicability.DISPLAY_ONLY
                or finding.severity.value == "information"
            ):
                continue
            text = self._tools.apply(self.result.text, finding)
            if text not in self._seen:
                yield KnownCause(finding.code, fix.message, text)

    def _one_mode(self, report: VerifyReport, calls: list[Exported]) -> Iterator[KnownCause]:
        """The last resort: the one mode that takes the model, where the user leaves the choice."""
        bad = [mode for mode, ended in report.modes.items() if not ended["ok"]]
        if self._request.mode is None and len(bad) == 1 and len(calls) == 1:
            line = calls[0].first_line - 1
            step = self._tools.other_mode(self.result.text, bad[0] != "strict", line)
            if step is not None and step.text not in self._seen:
                yield step

    def _export_calls(self, text: str) -> list[Exported]:
        """The calls of a text that export the model, under whatever name a fix gave it."""
        result = self.result
        before = exported_models(result.path, result.original)
        now = exported_models(result.path, text)
        if len(before) != len(now):
            return [call for call in now if call.name == self._request.name]
        return [new for old, new in zip(before, now, strict=True) if old.name == self._request.name]

    def _concerns(self, finding: Finding, calls: list[Exported]) -> bool:
        """Whether the model reaches the finding, or its export call has it."""
        names = {self._request.name, *(call.name for call in calls)}
        if finding.entry:
            return any(entry.rpartition(":")[2].removesuffix(".forward") in names for entry in finding.entry)
        return _on_call(finding, calls) or not calls


def _on_call(finding: Finding, calls: list[Exported]) -> bool:
    """Whether the finding lies in one of the export calls, or its fix does."""
    edits = finding.fix.edits if finding.fix is not None else ()
    places = [finding.range, *(edit.range for edit in edits if edit.path is None)]
    return any(
        place.start.line + 1 <= call.last_line and call.first_line <= place.end.line + 1
        for place in places
        for call in calls
    )


def _covers(finding: Finding, line: int | None) -> bool:
    return line is not None and finding.range.start.line <= line - 1 <= finding.range.end.line


def _failures(report: VerifyReport) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The message and the places of each failure: that of the whole, then those of the modes."""
    if report.failure is not None:
        yield report.failure.message, report.blame
    for mode in report.modes.values():
        if mode["failure"] is not None:
            yield mode["failure"]["message"], mode["failure"].get("blame") or []


def _blamed_line(report: VerifyReport, path: Path) -> int | None:
    """The line of the text that torch's failure leads to, from 1."""
    lines = (line_in(blame, path) for _, blames in _failures(report) for blame in blames)
    return next((line for line in lines if line is not None), None)


def _torchs_words(report: VerifyReport, path: Path) -> Iterator[tuple[str, int | None]]:
    """What torch said in full, each with its line (from 1)."""
    told: set[tuple[str, int | None]] = set()
    for message, blames in _failures(report):
        for blame in blames or [{}]:
            said = (str(blame.get("detail") or message), line_in(blame, path))
            if said not in told:
                told.add(said)
                yield said


def _refusals(findings: list[Finding]) -> list[str]:
    return [
        f"line {each.range.start.line + 1}: {each.code}: {note}"
        for each in findings
        for note in each.notes
        if note.startswith("No fix offered")
    ]
