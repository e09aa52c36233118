"""`check --verify`: fixes tried in the worker before they are kept, all of a file together, then one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exportlens.checking import Checked, check_files, fix_files
from exportlens.config import load_config
from exportlens.export.called import exported_models
from exportlens.export.request import DEFAULT_TIMEOUT_SECONDS, ExportRequest
from exportlens.export.session import Session
from exportlens.export.verify import VerifyReport, in_both_modes, verify_fix
from exportlens.finding import Finding
from exportlens.fixing import applicable, apply_fixes
from exportlens.trying import request_to_try

_MOST_FIXES = 200
Turn = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class Trial:
    """How one fix did. `verified` is None where nothing can be said of it; a fix with False is withdrawn."""

    finding: Finding
    verified: bool | None
    reason: str

    @property
    def line(self) -> str:
        """The verdict in one line, without the place."""
        assert self.finding.fix is not None
        word = {True: "verified", False: "withdrawn", None: "not verifiable"}[self.verified]
        why = f": {self.reason}" if self.reason else ""
        return f"{word}: {self.finding.fix.message}{why}"

    def to_json(self) -> dict[str, Any]:
        return {"verified": self.verified, "reason": self.reason}


def fix_and_verify(
    checked: Checked,
    overrides: Mapping[str, Any],
    *,
    unsafe: bool,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    tell: Callable[[str], None] = lambda words: None,
) -> list[Trial]:
    """Apply fixes as `checking.fix_files` does, but none that changes what a model computes, or that its export
    refuses: those stay among the findings. Runs the models of the files.

    Raises WorkerUnusable where the project's interpreter has no usable torch.
    """
    work = _Verification(checked, overrides, unsafe, timeout, tell)
    asyncio.run(work.run())
    return work.trials


@dataclass
class _Verification:
    checked: Checked
    overrides: Mapping[str, Any]
    unsafe: bool
    timeout: float
    tell: Callable[[str], None]
    trials: list[Trial] = field(default_factory=list)
    _withdrawn: dict[int, Turn] = field(default_factory=dict)
    _sessions: dict[Path, Session] = field(default_factory=dict)

    async def run(self) -> None:
        """All files, each with all of its fixes at once; one by one where that does not hold."""
        checked = self.checked
        originals = {path: checked.sources.readable(path) or "" for path in checked.files}
        fix_files(checked, self.overrides, unsafe=self.unsafe)
        try:
            for path in sorted(checked.changed):
                await self._file(path, originals[path])
        finally:
            for session in self._sessions.values():
                await session.close()
        checked.fixed = [trial.finding for trial in self.trials if trial.verified is not False]
        given = {**checked.sources.given, **checked.changed}
        checked.findings = check_files(checked.files, self.overrides, given=given, processes=1).findings
        self._place_withdrawn()

    def _place_withdrawn(self) -> None:
        """Withdrawn fixes by the findings that they leave in the text as it is now."""
        sources = {path: self.checked.changed.get(path) for path in self.checked.files}
        for path in {trial.finding.path for trial in self.trials if trial.verified is False}:
            text = sources.get(path) or self.checked.sources.readable(path) or ""
            mine = [finding for finding in self.checked.findings if finding.path == path]
            now = dict(_numbered(mine, text))
            for index, trial in enumerate(self.trials):
                if trial.verified is False and trial.finding.path == path:
                    left = now.get(self._withdrawn[id(trial)])
                    if left is not None:
                        self.trials[index] = replace(trial, finding=left)

    async def _file(self, path: Path, original: str) -> None:
        fixed = [finding for finding in self.checked.fixed if finding.path == path]
        hindrance = _hindrance(path, self.checked)
        if hindrance:
            self.trials += [Trial(finding, None, hindrance) for finding in fixed]
            return
        text = self.checked.changed[path]
        reports = await self._reports(path, original, text, fixed)
        if any(report.holds({path: original}, {path: text}) is False for _, report in reports.values()):
            text, fixed, withdrawn = await self._one_by_one(path, original)
            self.trials += withdrawn.values()
            self._withdrawn |= {id(trial): turn for turn, trial in withdrawn.items()}
            if text == original:
                del self.checked.changed[path]
                return
            self.checked.changed[path] = text
            reports = await self._reports(path, original, text, fixed)
        for finding in fixed:
            self.trials.append(self._judged(finding, path, original, reports))

    def _judged(
        self,
        finding: Finding,
        path: Path,
        original: str,
        reports: Mapping[str, tuple[ExportRequest, VerifyReport]],
    ) -> Trial:
        request = _request(finding, path, original)
        if request is None:
            return Trial(
                finding, None, "no model of this file reaches it, so there is nothing to run it with"
            )
        report = reports[request.model][1]
        if report.verified:
            return Trial(finding, True, _left_out(report))
        return Trial(finding, None, _first_line(report.reason))

    async def _reports(
        self, path: Path, original: str, text: str, fixed: list[Finding]
    ) -> dict[str, tuple[ExportRequest, VerifyReport]]:
        """One verification for each model that the fixes reach, by the model."""
        found: dict[str, tuple[ExportRequest, VerifyReport]] = {}
        for finding in fixed:
            request = _request(finding, path, original)
            if request is not None and request.model not in found:
                found[request.model] = request, await self._verify(request, text)
        return found

    async def _verify(self, request: ExportRequest, text: str) -> VerifyReport:
        self.tell(request.model)
        file = request.file
        assert file is not None
        interpreter = load_config(file, self.overrides).interpreter
        session = self._sessions.setdefault(interpreter, Session(interpreter))
        return await verify_fix(session, in_both_modes(replace(request, timeout=self.timeout)), {file: text})

    async def _one_by_one(self, path: Path, original: str) -> tuple[str, list[Finding], dict[Turn, Trial]]:
        """The text with the fixes that hold, those, and the ones that do not."""
        text, kept = original, list[Finding]()
        withdrawn: dict[Turn, Trial] = {}
        seen = {original}
        for _ in range(_MOST_FIXES):
            key, finding, candidate = next(self._candidates(path, text, withdrawn, seen), (None, None, text))
            if finding is None or key is None:
                break
            seen.add(candidate)
            request = _request(finding, path, original)
            report = await self._verify(request, candidate) if request is not None else None
            if report is not None and report.holds({path: text}, {path: candidate}) is False:
                withdrawn[key] = Trial(finding, False, _first_line(report.reason))
                continue
            text = candidate
            kept.append(finding)
        return text, kept, withdrawn

    def _candidates(
        self, path: Path, text: str, withdrawn: Mapping[Turn, Trial], seen: set[str]
    ) -> Iterator[tuple[Turn, Finding, str]]:
        """The fixes of `text` that were not withdrawn, each with the text that it makes."""
        given = {**self.checked.sources.given, **self.checked.changed, path: text}
        findings = check_files([path], self.overrides, given=given, processes=1).findings
        for turn, finding in _numbered([each for each in findings if each.path == path], text):
            if turn not in withdrawn and applicable(finding.fix, unsafe=self.unsafe):
                applied = apply_fixes(path, text, [finding])
                if applied.text not in seen:
                    yield turn, finding, applied.text


def _numbered(findings: list[Finding], text: str) -> Iterator[tuple[Turn, Finding]]:
    """Each finding with what it is known by while fixes move the lines: code, words, its line, its turn among the
    like.
    """
    lines = text.splitlines()
    counted: dict[tuple[str, str, str], int] = {}
    for finding in findings:
        row = finding.range.start.line
        alike = (finding.code, finding.message, lines[row].strip() if row < len(lines) else "")
        counted[alike] = counted.get(alike, -1) + 1
        yield (*alike, counted[alike]), finding


def _hindrance(path: Path, checked: Checked) -> str:
    """Why the fixes of a file cannot be tried at all, or ""."""
    if path in checked.sources.given:
        return "the code comes from standard input; only a file can be imported"
    if path.suffix != ".py":
        return "only a Python file can be imported"
    return ""


def _request(finding: Finding, path: Path, original: str) -> ExportRequest | None:
    """With what to try a fix: a finding without an entry point lies in an export call; of later rounds the line is
    that of a text already changed, and the file's only call is meant.
    """
    request = request_to_try(finding, path, original)
    if request is None and not finding.entry:
        calls = exported_models(path, original)
        if len(calls) == 1:
            return ExportRequest(f"{path}:{calls[0].name}", proposals=(calls[0].inputs,))
    return request


def _left_out(report: VerifyReport) -> str:
    return f"{', '.join(report.left_out)} is left out; everything else is equal" if report.left_out else ""


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
