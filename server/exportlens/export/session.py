"""A session: one interpreter's worker, and the confirmations that are run in it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exportlens.export.findings import blame_finding, left_findings
from exportlens.export.interrupted import interrupted_at
from exportlens.export.registry import TargetPlace, choose, known_targets
from exportlens.export.report import Failure, ModeReport, Report, TargetReport
from exportlens.export.request import ALL_TARGETS, ExportRequest
from exportlens.export.worker_process import Ended, WorkerProcess, WorkerUnusable
from exportlens.finding import Finding
from exportlens.outcome import Mode, TorchVersion


@dataclass(frozen=True, slots=True)
class Progress:
    """One step, for people. `subject` is the mode or the target at work; `log` is what the model printed."""

    stage: str
    subject: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """A target as seen from one interpreter: `message` says with what it would run, or what is missing."""

    name: str
    purpose: str
    available: bool
    message: str
    install: str | None = None
    runs_here: bool = True

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


Listen = Callable[[Progress], None]


def silent(_: Progress) -> None:
    return None


def project_root(path: Path) -> Path:
    """The nearest folder above `path` with a pyproject.toml, setup.py or .git; else the folder of `path`."""
    start = path if path.is_dir() else path.parent
    for folder in (start, *start.parents):
        if any((folder / name).exists() for name in ("pyproject.toml", "setup.py", ".git")):
            return folder
    return start


def failure_of(ended: Ended, request_timeout: float | None, memory: int | None) -> Failure | None:
    """The failure of one process: what it told, or how it died."""
    if ended.reason == "cancelled":
        return Failure(ended.stage, "cancelled", "cancelled on request")
    if ended.reason == "timeout":
        message = f"{ended.stage} was still running after {request_timeout:g} s; raise it with --timeout"
        return Failure(ended.stage, "timeout", message)
    if ended.reason == "memory":
        size = f"{(memory or 0) / 2**30:.3g} GiB"
        message = f"{ended.stage} needed more than the limit of {size}; raise it with --memory-limit"
        return Failure(ended.stage, "memory", message)
    told = ended.parts.get("failure")
    if told:
        return Failure(told["stage"], told["kind"], told["message"])
    if (
        ended.done or ended.stage == "check inputs"
    ):  # its results are in: feeding wrong inputs ended the process
        return None
    code = ended.code or 0
    how = f"exit code {code}"
    if code < 0:
        how = f"signal {signal.Signals(-code).name}"
    why = f" ({ended.broken})" if ended.broken else ""
    return Failure(
        ended.stage, "crash", f"the process ended during {ended.stage} with {how}{why}; its log has the rest"
    )


class Session:
    """Confirmations in one interpreter. One at a time; `cancel` ends the one that runs."""

    def __init__(self, interpreter: Path, *, fork: bool = True) -> None:
        self.interpreter = interpreter
        self._worker = WorkerProcess(interpreter, fork=fork)
        self._others: dict[Path, WorkerProcess] = {}
        self._running = self._worker
        self._lock = asyncio.Lock()
        self._cancelled = False

    @property
    def log(self) -> str:
        """The end of what models (and torch) printed."""
        return self._worker.log.text()

    async def start(self) -> dict[str, Any]:
        """Start the worker ahead of need: {torch, python, executable, forks}. Raises WorkerUnusable."""
        return await self._worker.start()

    def cancel(self) -> None:
        """End the running request at once."""
        self._cancelled = True
        self._running.kill()

    async def close(self) -> None:
        """End the worker and what it runs."""
        self._cancelled = True
        for worker in (self._worker, *self._others.values()):
            await worker.close()

    async def probe(self) -> list[TargetInfo]:
        """What each target says of this interpreter. Raises WorkerUnusable."""
        async with self._lock:
            places = list(known_targets().values())
            found: dict[str, TargetInfo] = {}
            request = {"op": "probe", "targets": [place.to_json() for place in places], "timeout": 120}
            ended = await self._worker.run(request, lambda event: None)
            for place in places:
                facts = ended.parts.get(f"target {place.name}")
                if facts is None:
                    failure = failure_of(ended, 120, None)
                    message = failure.message if failure else "no answer"
                    found[place.name] = TargetInfo(place.name, place.purpose, False, message)
                else:
                    found[place.name] = TargetInfo(
                        place.name,
                        facts["purpose"] or place.purpose,
                        facts["available"],
                        facts["message"],
                        facts["install"] if not facts["available"] else None,
                        facts["runs_here"],
                    )
            return list(found.values())

    async def run(self, request: ExportRequest, progress: Listen = silent) -> Report:
        """Confirm one model: each mode, then each target from the first mode that exports. Never raises for
        the model.

        Raises ValueError for a target's name that is none.
        """
        places = choose(request.targets)
        async with self._lock:
            self._cancelled = False
            self._worker.log.clear()
            started = time.perf_counter()
            report = Report(request.model, interpreter=str(self.interpreter))
            report.unavailable_is_failure = ALL_TARGETS not in request.targets
            report.targets = [TargetReport(place.name) for place in places]
            self._worker.on_output = lambda text: progress(Progress("log", log=text))
            with tempfile.TemporaryDirectory(prefix="exportlens-") as scratch:
                try:
                    progress(Progress("start", str(self.interpreter)))
                    facts = await self._worker.start()
                    report.torch, report.python = facts["torch"], facts["python"]
                    await _Confirmation(self, request, places, report, Path(scratch), progress).run()
                except WorkerUnusable as error:
                    report.failure = Failure("start", "unavailable", str(error))
            self._worker.on_output = None
            report.seconds = round(time.perf_counter() - started, 3)
            report.log = self._worker.log.text()
            return report

    async def exclusively(self, request: dict[str, Any], subject: str, progress: Listen) -> Ended:
        """One request by itself, after those that wait before it. Raises WorkerUnusable."""
        async with self._lock:
            self._cancelled = False
            return await self.send(request, subject, progress)

    async def send(
        self, request: dict[str, Any], subject: str, progress: Listen, interpreter: Path | None = None
    ) -> Ended:
        """One request to the worker (or another interpreter's), its stages told as progress.

        Raises WorkerUnusable.
        """

        def listen(event: dict[str, Any]) -> None:
            if event["event"] == "stage":
                progress(Progress(event["name"], subject))

        if self._cancelled:
            return Ended(reason="cancelled")
        self._running = self._worker
        if interpreter is not None and interpreter != self.interpreter:
            if interpreter not in self._others:
                self._others[interpreter] = WorkerProcess(interpreter)
            self._running = self._others[interpreter]
        return await self._running.run(request, listen)


def distinct(findings: list[Finding]) -> list[Finding]:
    """In order of place; of findings with one code on one line (both modes, several targets) one with every
    note.
    """
    kept: dict[tuple[str, Path, int, str], Finding] = {}
    for finding in findings:
        key = (finding.code, finding.path, finding.range.start.line, finding.data.get("target", ""))
        kept[key] = _merged(kept[key], finding) if key in kept else finding
    return sorted(kept.values(), key=lambda finding: finding.sort_key())


def _merged(one: Finding, other: Finding) -> Finding:
    """One finding of two: the one that names the smaller place, with what only the other one knows."""
    if other.range != one.range and other.range.start >= one.range.start and other.range.end <= one.range.end:
        one, other = other, one
    more = [note for note in other.notes if note not in one.notes]
    reasons = [finding.message.partition(": ")[2] for finding in (one, other)]
    if reasons[0] != reasons[1]:
        more.append(f"In the other mode: {reasons[1] or other.message}")
    data = {**other.data, **one.data}
    said = [finding.data["torch"] for finding in (one, other) if finding.data.get("torch")]
    if len(set(said)) == 2:
        data["torch"] = f"{said[0]}\n\nIn the other mode:\n{said[1]}"
    return replace(one, notes=(*one.notes, *more), url=one.url or other.url, data=data)


def worker_words(request: ExportRequest) -> dict[str, Any]:
    """What every request about a model tells the worker: where it is, how it is made, its limits."""
    file = request.file
    root = project_root(file) if file else Path.cwd()
    homes = [str(root), str(Path.cwd())] if file is None else [str(root)]
    return {
        "model": f"{file}:{request.name}" if file else request.model,
        **{name: getattr(request.given, name) for name in ("init", "inputs", "kwargs", "dynamic_shapes")},
        "proposals": [proposal.to_json() for proposal in request.proposals],
        # The file's own folder comes last: in a package, what lies beside it is not what `import` means.
        "roots": [str(root), str(Path.cwd()), str(file.parent)] if file else [str(Path.cwd())],
        "homes": homes,
        "train": request.train,
        "wrap": request.wrap,
        "timeout": request.timeout,
        "memory_limit": request.memory_limit,
        "cwd": os.getcwd(),
    }


class _Confirmation:
    """One run of one request: the order of its processes and what each adds to the report."""

    def __init__(
        self,
        session: Session,
        request: ExportRequest,
        places: list[TargetPlace],
        report: Report,
        scratch: Path,
        progress: Listen,
    ) -> None:
        self._session = session
        self._request = request
        self._places = places
        self._report = report
        self._scratch = scratch
        self._progress = progress
        self._words = worker_words(request)
        self._definition: dict[str, Any] | None = None

    async def run(self) -> None:
        """Modes first; targets from the first mode that gave a sound program, else from any that gave one."""
        report = self._report
        modes = self._request.modes(default_mode(report.torch or ""))
        report.mode = self._request.mode or modes[0]
        for mode in modes:
            report.modes.append(await self._mode(mode))
            self._fill_chosen()
            if report.failure is not None and report.failure.kind in (
                "import",
                "construct",
                "inputs",
                "cancelled",
            ):
                break
        source = next((m for m in report.modes if m.ok), None)
        source = source or next(
            (m for m in report.modes if (self._folder(m.mode) / "program.pt2").exists()), None
        )
        for index, place in enumerate(self._places):
            if source is not None and not (report.failure and report.failure.kind == "cancelled"):
                report.targets[index] = await self._target(place, source)
        if self._request.draft and report.failure is not None and report.failure.kind == "export":
            await self._draft()
        report.findings = distinct(report.findings)

    def _folder(self, mode: str) -> Path:
        return self._scratch / mode

    def _stack(self, subject: str) -> Path:
        """Where the process for a mode or a target writes where it was ended."""
        return self._scratch / f"{subject}.stack"

    def _fill_chosen(self) -> None:
        """Later processes use the proposal that worked in the first one."""
        if self._report.chosen:
            self._words.update({k: v for k, v in self._report.chosen.items() if k != "source"})
            self._words["proposals"] = []

    async def _mode(self, mode: str) -> ModeReport:
        folder = self._folder(mode)
        folder.mkdir()
        words = {**self._words, "op": "export", "mode": mode, "folder": str(folder)}
        words["stack"] = str(self._stack(mode))
        words["confirmed"] = [str(self._folder(before.mode)) for before in self._report.modes]
        started = time.perf_counter()
        ended = await self._session.send(words, mode, self._progress)
        parts = ended.parts
        self._definition = parts.get("definition") or self._definition
        found = ModeReport(mode, seconds=round(time.perf_counter() - started, 3))
        found.stages = _rounded(parts.get("stages", {}))
        found.comparison = parts.get("comparison")
        found.histogram = parts.get("histogram", {})
        found.dynamic_dims = parts.get("dynamic_dims", [])
        found.peak_memory = ended.peak_memory or parts.get("peak_memory")
        if (folder / "graph.json").exists() and ended.done:
            found.graph = json.loads((folder / "graph.json").read_text())
        if parts.get("chosen") and self._report.chosen is None:
            self._report.chosen = parts["chosen"]
            self._add_passed_over(parts.get("passed_over", []))
        found.failure = failure_of(ended, self._request.timeout, self._request.memory_limit)
        found.ok = found.failure is None
        if found.failure is not None:
            self._report.failure = self._report.failure or found.failure
            self._add_findings(found.failure, parts, mode)
        return found

    def _add_passed_over(self, calls: list[dict[str, Any]]) -> None:
        """A warning on each export call of the file that itself does not run."""
        for call in calls:
            blame = {"frame": {"file": str(self._request.file), "line": call["line"]}, "whole": "call"}
            message = call["message"].removeprefix("eager fails on the example inputs: ")
            finding = blame_finding("passed-over", {**blame, "message": message})
            if finding is not None:
                self._report.findings.append(finding)

    def _add_findings(
        self, failure: Failure, parts: dict[str, Any], subject: str, target: str | None = None
    ) -> None:
        key = {
            "export": "export",
            "mismatch": "target-run" if target else "mismatch",
            "run": f"target-{'load' if failure.stage == 'load' else 'run'}" if target else "run",
            "lower": "lower",
            "eager": "eager",
            "import": "import",
            "construct": "import",
            "inputs": "eager",
        }.get(failure.kind, "limit")
        blames = (parts.get("failure") or {}).get("blame") or []
        self._definition = parts.get("definition") or self._definition
        if key == "limit" and not blames:
            frame = interrupted_at(self._stack(subject), self._words["homes"])
            blames = [{"frame": frame, "type": failure.kind, "message": failure.message}]
        if (key in ("import", "limit") or failure.kind == "inputs") and not any(
            blame.get("frame") for blame in blames
        ):
            return
        for blame in blames:
            frame = blame.get("frame") or self._definition
            finding = blame_finding(
                key, {**blame, "frame": frame}, fallback=self._request.file, target=target
            )
            if finding is not None:
                self._report.findings.append(finding)

    async def _target(self, place: TargetPlace, source: ModeReport) -> TargetReport:
        """Lower the program of `source`, which may itself have failed against eager."""
        mode, folder = source.mode, self._folder(source.mode)
        words = {
            **self._words,
            "op": "target",
            "mode": mode,
            "folder": str(folder),
            "target": place.to_json(),
            "stack": str(self._stack(place.name)),
        }
        started = time.perf_counter()
        python = dict(self._request.target_pythons).get(place.name)
        try:
            ended = await self._session.send(words, place.name, self._progress, python)
        except WorkerUnusable as error:
            if python is None:
                raise
            failure = Failure("start", "unavailable", str(error))
            return TargetReport(place.name, "unavailable", "start", failure=failure)
        parts = ended.parts
        found = TargetReport(place.name, seconds=round(time.perf_counter() - started, 3), stage=ended.stage)
        found.stages = _rounded(parts.get("stages", {}))
        found.comparison, found.latency = parts.get("comparison"), parts.get("latency")
        found.notes = parts.get("notes", [])
        if ended.stage == "check inputs" and not ended.done:
            found.notes.append("wrong inputs end the process: check dtypes and sizes before the call")
        coverage = parts.get("coverage") or {}
        found.delegated, found.left = coverage.get("delegated"), coverage.get("left", [])
        found.peak_memory = ended.peak_memory or parts.get("peak_memory")
        found.failure = failure_of(ended, self._request.timeout, self._request.memory_limit)
        if found.failure is None and parts.get("artifact"):
            found.failure = self._take_artifact(place, parts["artifact"], found)
        inherited = found.failure is None or found.failure.kind in ("mismatch", "run")
        if source.failure is not None and inherited:  # nothing better than what it came from
            found.status, found.failure, found.stage = "failed", source.failure, source.failure.stage
        elif found.failure is None:
            found.status = "ok"
        else:
            found.stage = found.failure.stage
            found.status = "unavailable" if found.failure.kind == "unavailable" else "failed"
            self._add_findings(found.failure, parts, place.name, place.name)
        self._report.findings.extend(left_findings(place.name, found.left))
        if found.failure is not None and found.failure.kind == "cancelled":
            self._report.failure = self._report.failure or found.failure
        return found

    def _take_artifact(self, place: TargetPlace, made: dict[str, Any], found: TargetReport) -> Failure | None:
        """Move a confirmed artifact to where the user wants it, in one step: a half-written one is never
        seen.
        """
        found.bytes = made["bytes"]
        output = self._request.output
        if output is None:
            return None
        stem = f"{self._request.name.replace('.', '-')}.{place.name}"
        try:
            output.mkdir(parents=True, exist_ok=True)
            for source, ending in made["files"].items():
                _put(Path(source), output / f"{stem}{ending}")
        except OSError as error:
            return Failure("save", "lower", f"{output} cannot be written: {error.strerror or error}")
        found.artifact = output / f"{stem}{made['suffix']}"
        return None

    async def _draft(self) -> None:
        """torch's own draft export, for the failures behind the first one."""
        words = {**self._words, "op": "draft"}
        ended = await self._session.send(words, "draft", self._progress)
        for blame in ended.parts.get("draft", []):
            self._report.draft.append(blame)
            finding = blame_finding("draft", blame, fallback=None)
            if finding is not None:
                self._report.findings.append(finding)


def _put(source: Path, final: Path) -> None:
    """Move a file or a folder to its place under its final name in one step, over what was there."""
    part = final.with_name(final.name + ".part")
    for old in (part, final):
        if old.is_dir():
            shutil.rmtree(old)
    shutil.move(source, part)
    os.replace(part, final)


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {stage: round(value, 4) for stage, value in seconds.items() if stage != "start"}


def default_mode(torch_version: str) -> str:
    """The mode that this torch traces in when it is not told."""
    try:
        return TorchVersion.parse(torch_version).default_mode.value
    except ValueError:
        return Mode.NON_STRICT.value


def run_export(
    interpreter: Path, request: ExportRequest, progress: Listen = silent, *, fork: bool = True
) -> Report:
    """`Session.run` for callers without an event loop; Ctrl-C cancels and the report says so."""

    async def whole() -> Report:
        session = Session(interpreter, fork=fork)
        loop = asyncio.get_running_loop()
        handled = False
        try:
            loop.add_signal_handler(signal.SIGINT, session.cancel)
            handled = True
        except (NotImplementedError, RuntimeError, ValueError):
            pass
        try:
            return await session.run(request, progress)
        finally:
            if handled:
                loop.remove_signal_handler(signal.SIGINT)
            await session.close()

    return asyncio.run(whole())


def probe_targets(interpreter: Path) -> list[TargetInfo]:
    """`Session.probe` for callers without an event loop. Raises WorkerUnusable."""

    async def whole() -> list[TargetInfo]:
        session = Session(interpreter)
        try:
            return await session.probe()
        finally:
            await session.close()

    return asyncio.run(whole())
