"""Repair: export, blame, the fix of the rule that knows that cause, and again, until the model exports."""

from __future__ import annotations

import asyncio
import difflib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from exportlens.export.called import Exported, exported_models
from exportlens.export.request import BOTH_MODES, ExportRequest
from exportlens.export.session import Session, project_root
from exportlens.export.verify import Texts, VerifyReport, place_of, verify_fix
from exportlens.finding import Applicability, Finding
from exportlens.source.files import read_source

MOST_STEPS = 30
_CANNOT_RUN = ("import", "construct", "inputs", "eager", "unavailable")
_ENDED = ("timeout", "memory", "cancelled")


class Tools(Protocol):
    """What a repair asks of those who know rules and rewrites."""

    def diagnose(self, texts: Texts) -> list[Finding]:
        """The findings that the model's file leads to where the files have these texts, with their fixes."""

    def apply(self, texts: Texts, finding: Finding) -> Texts:
        """The texts with the finding's fix."""

    def apply_together(self, path: Path, text: str, findings: Sequence[Finding]) -> str:
        """The text of the file at `path` with the fixes of several findings in it, as many as go together."""

    def other_mode(self, text: str, strict: bool, line: int) -> KnownCause | None:
        """The export call of the model's file on `line` (from 0) with the only mode that takes the model."""

    def known_causes(self, path: Path, text: str, words: str, line: int | None) -> Iterator[KnownCause]:
        """What only an export shows: the ways out that torch's `words` at `line` (from 0) of the file lead to, best
        first.
        """


@dataclass(frozen=True, slots=True)
class KnownCause:
    """A way out: the rule that has this cause, what is done about it, and the texts that this changes."""

    code: str
    fix: str
    texts: Texts


@dataclass(frozen=True)
class Step:
    """One round: what stopped the export (`reason`, on `line` from 1 of the file `path` where it is known), and the fix
    that was applied; `withdrawn` says why that was taken back."""

    reason: str
    path: Path | None
    line: int | None
    code: str = ""
    fix: str = ""
    withdrawn: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "reason": self.reason,
            "filename": str(self.path) if self.path else None,
            "line": self.line,
            "code": self.code,
            "fix": self.fix,
            "withdrawn": self.withdrawn,
        }


@dataclass
class Repair:
    """How far a repair came. `repaired` says that the model exports and equals eager; `texts` are its files that steps
    were tried in, after all steps that held, `originals` the same as they lie on disk; `left_out` names the outputs that a
    step left out, `elsewhere` the errors of the model outside of its project, which have fixes: path, line (from 1), and
    what is wrong."""

    model: str
    path: Path
    originals: dict[Path, str]
    texts: dict[Path, str]
    repaired: bool = False
    steps: list[Step] = field(default_factory=list)
    reason: str = ""
    refusals: list[str] = field(default_factory=list)
    could_run: bool = True
    left_out: list[str] = field(default_factory=list)
    elsewhere: list[tuple[Path, int, str]] = field(default_factory=list)

    @property
    def changed(self) -> dict[Path, str]:
        """The new texts of the files that the repair changes."""
        return {path: text for path, text in self.texts.items() if text != self.originals[path]}

    @property
    def fixes(self) -> int:
        """How many fixes were applied and kept."""
        return sum(1 for step in self.steps if step.fix and not step.withdrawn)

    def diff(self, name: Callable[[Path], str] = str) -> str:
        """One unified diff from the files as they are to what they would become; `name` says how a file is shown."""
        lines: list[str] = []
        for path, text in self.changed.items():
            shown = name(path)
            lines += difflib.unified_diff(
                self.originals[path].splitlines(keepends=True),
                text.splitlines(keepends=True),
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
            "diff": self.diff(lambda path: path.name if len(self.changed) == 1 else str(path)),
        }


async def repair_model(
    session: Session,
    request: ExportRequest,
    tools: Tools,
    tell: Callable[[Step], None] = lambda step: None,
) -> Repair:
    """Repair the model of `request`, which names a file; without a mode it has to export in the one that the file's
    export call names, else in both. What stands in the way in other files of its project is repaired there. Nothing is
    written: the caller decides on `Repair.changed`.

    Raises ValueError for a model that is not named by file, UnreadableSource for its file, WorkerUnusable as `Session.run` does.
    """
    file = request.file
    if file is None:
        raise ValueError(f"only a model named by file can be repaired, not {request.model}")
    original = read_source(file).text
    with tempfile.TemporaryDirectory(prefix="exportlens-repair-") as memory:
        result = Repair(request.model, file, {file: original}, {file: original})
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
    """One repair: the texts so far, and every state of them that was there before."""

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
        self._seen = {frozenset[tuple[Path, str]]()}
        self._memory = memory
        self._home = project_root(result.path)
        self.result = result

    async def run(self) -> None:
        """Step by step, until the model is verified and nothing that its own export call breaks is left."""
        result = self.result
        report = await self._verified(result.texts)
        result.reason = report.reason
        if report.failure is not None and report.failure.kind in (*_CANNOT_RUN, *_ENDED):
            result.could_run = report.failure.kind in _ENDED
            return
        for _ in range(MOST_STEPS):
            candidates = self._candidates(report)
            step = next(candidates, None)
            while step is not None:
                texts = {**result.texts, **step.texts}
                self._seen.add(self._state(texts))
                tried = await self._verified(texts)
                done = Step(
                    report.reason or "the program is used with other sizes than it was exported for",
                    *self._blamed(report),
                    step.code,
                    step.fix,
                )
                if tried.holds(self._known(texts), texts) is False or (
                    report.verified and not tried.verified
                ):
                    done = replace(done, withdrawn=tried.reason)
                self._note(done)
                if not done.withdrawn:
                    break
                step = next(candidates, None)
            if step is None:
                break
            result.texts, report = texts, tried
            result.reason, result.left_out = report.reason, report.left_out
        result.repaired = report.verified
        if not report.verified:
            findings = self._tools.diagnose(result.texts)
            result.refusals = self._refusals([f for f in findings if self._is_own(f.path)])
            calls = self._export_calls()
            result.elsewhere = [
                (each.path, each.range.start.line + 1, f"{each.code}: {each.message}")
                for each in findings
                if not self._is_own(each.path)
                and each.severity.value == "error"
                and each.fix is not None
                and self._concerns(each, calls)
            ]
            self._note(Step(report.reason, *self._blamed(report, own=False)))

    def _note(self, step: Step) -> None:
        self.result.steps.append(step)
        self._tell(step)

    def _is_own(self, path: Path) -> bool:
        """Whether a file may be changed: it belongs to the model's project, and is nothing that was installed there."""
        if path == self.result.path:
            return True
        inside = path.relative_to(self._home).parts if path.is_relative_to(self._home) else ()
        return bool(inside) and "site-packages" not in inside and "dist-packages" not in inside

    def _known(self, texts: Texts) -> Texts:
        """The texts so far of the files that `texts` has; those on disk of files that were not touched yet."""
        for path in texts:
            if path not in self.result.originals:
                self.result.originals[path] = read_source(path).text
        return {path: self.result.texts.get(path, self.result.originals[path]) for path in texts}

    async def _verified(self, texts: Texts) -> VerifyReport:
        request = self._request
        if request.mode is None:
            said = {call.strict for call in self._export_calls(texts)}
            strict = said.pop() if len(said) == 1 else None
            mode = BOTH_MODES if strict is None else "strict" if strict else "non-strict"
            request = replace(request, mode=mode)
        # As it stands: that torch.export does not take a bare function is one of the things to be repaired.
        return await verify_fix(self._session, request, texts, wrap=False, memory=self._memory)

    def _candidates(self, report: VerifyReport) -> Iterator[KnownCause]:
        """What to try next, best first: the fix for the blamed line, those for the export call, what torch's own
        words lead to, the fixes of the model's other errors, then of its warnings, then the one mode that takes it.
        A verified text has only the errors of its export call left.
        """
        result = self.result
        findings = [each for each in self._tools.diagnose(result.texts) if self._is_own(each.path)]
        calls = self._export_calls()
        mine = [each for each in findings if self._concerns(each, calls)]
        errors = [each for each in mine if each.severity.value == "error"]
        on_call = [each for each in errors if each.path == result.path and _on_call(each, calls)]
        if report.verified:
            yield from self._fixes(on_call)
            return
        path, line = self._blamed(report)
        blamed = [each for each in findings if each.path == path and _covers(each, line)]
        yield from self._together(blamed)
        yield from self._fixes(blamed)
        yield from self._fixes(on_call)
        for words, (at_path, at) in self._torchs_words(report):
            text = self._known({at_path: ""})[at_path]
            for cause in self._tools.known_causes(at_path, text, words, None if at is None else at - 1):
                if self._is_new(cause):
                    yield cause
        yield from self._fixes(errors)
        yield from self._fixes([each for each in mine if each.severity.value == "warning"])
        yield from self._one_mode(report, calls)

    def _is_new(self, cause: KnownCause) -> bool:
        return self._state({**self.result.texts, **cause.texts}) not in self._seen

    def _state(self, texts: Texts) -> frozenset[tuple[Path, str]]:
        """What distinguishes the texts from those on disk."""
        return frozenset(each for each in texts.items() if each[1] != self.result.originals[each[0]])

    def _fixes(self, findings: list[Finding]) -> Iterator[KnownCause]:
        gravest_first = sorted(findings, key=lambda each: (each.severity.value != "error", each.sort_key()))
        for finding in gravest_first:
            fix = finding.fix
            if (
                fix is None
                or fix.applicability is Applicability.DISPLAY_ONLY
                or finding.severity.value == "information"
                or not all(self._is_own(edit.path) for edit in fix.edits if edit.path is not None)
            ):
                continue
            before = self._known({finding.path: "", **{edit.path: "" for edit in fix.edits if edit.path}})
            cause = KnownCause(finding.code, fix.message, self._tools.apply(before, finding))
            if self._is_new(cause):
                yield cause

    def _together(self, findings: list[Finding]) -> Iterator[KnownCause]:
        """The fixes of one rule for one line, where it has several there: torch stops at the first, and would at the next."""
        for code in dict.fromkeys(each.code for each in findings):
            several = [
                each
                for each in findings
                if each.code == code
                and each.fix is not None
                and each.fix.applicability is not Applicability.DISPLAY_ONLY
                and each.severity.value != "information"
                and all(edit.path is None for edit in each.fix.edits)
            ]
            if len(several) > 1:
                path, fix = several[0].path, several[0].fix
                text = self._known({path: ""})[path]
                changed = {path: self._tools.apply_together(path, text, several)}
                cause = KnownCause(code, fix.message if fix is not None else "", changed)
                if self._is_new(cause):
                    yield cause

    def _one_mode(self, report: VerifyReport, calls: list[Exported]) -> Iterator[KnownCause]:
        """The last resort: the one mode that takes the model, where the user leaves the choice."""
        bad = [mode for mode, ended in report.modes.items() if not ended["ok"]]
        if self._request.mode is None and len(bad) == 1 and len(calls) == 1:
            line = calls[0].first_line - 1
            text = self.result.texts[self.result.path]
            step = self._tools.other_mode(text, bad[0] != "strict", line)
            if step is not None and self._is_new(step):
                yield step

    def _export_calls(self, texts: Texts | None = None) -> list[Exported]:
        """The calls of the model's file that export it, under whatever name a fix gave it."""
        result = self.result
        text = (result.texts if texts is None else texts)[result.path]
        before = exported_models(result.path, result.originals[result.path])
        now = exported_models(result.path, text)
        if len(before) != len(now):
            return [call for call in now if call.name == self._request.name]
        return [new for old, new in zip(before, now, strict=True) if old.name == self._request.name]

    def _concerns(self, finding: Finding, calls: list[Exported]) -> bool:
        """Whether the model reaches the finding, or its export call has it."""
        names = {self._request.name, *(call.name for call in calls)}
        if finding.entry:
            return any(entry.rpartition(":")[2].removesuffix(".forward") in names for entry in finding.entry)
        return (finding.path == self.result.path and _on_call(finding, calls)) or not calls

    def _blamed(self, report: VerifyReport, *, own: bool = True) -> tuple[Path | None, int | None]:
        """The first place that torch's failure leads to, `own`: in a file that may be changed; the line from 1."""
        for _, blames in _failures(report):
            for place in map(place_of, blames):
                if place is not None and (not own or self._is_own(place[0])):
                    return place
        return None, None

    def _torchs_words(self, report: VerifyReport) -> Iterator[tuple[str, tuple[Path, int | None]]]:
        """What torch said in full, each with its place; the line from 1."""
        told: set[tuple[str, tuple[Path, int | None]]] = set()
        for message, blames in _failures(report):
            for blame in blames or [{}]:
                place = place_of(blame)
                own = place if place is not None and self._is_own(place[0]) else (self.result.path, None)
                said = (str(blame.get("detail") or message), own)
                if said not in told:
                    told.add(said)
                    yield said

    def _in(self, path: Path) -> str:
        return "" if path == self.result.path else f"{path.name}, "

    def _refusals(self, findings: list[Finding]) -> list[str]:
        return [
            f"{self._in(each.path)}line {each.range.start.line + 1}: {each.code}: {note}"
            for each in findings
            for note in each.notes
            if note.startswith("No fix offered")
        ]


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
