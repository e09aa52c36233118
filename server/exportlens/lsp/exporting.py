"""Real exports from the editor: models, targets, export, repair and verify, as requests and as commands."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types

from exportlens.counterpart import place_of
from exportlens.lsp.convert import to_path, to_range, to_uri
from exportlens.lsp.evidence import Trial
from exportlens.lsp.server import Server
from exportlens.source.positions import Lines
from exportlens.trying import request_to_try

if TYPE_CHECKING:
    from exportlens.export.repair import Repair, Step
    from exportlens.export.report import Report
    from exportlens.export.request import ExportRequest, ModelInputs
    from exportlens.export.session import Progress, Session
    from exportlens.export.verify import VerifyReport
    from exportlens.finding import Finding
    from exportlens.lsp.analysis import Open
    from exportlens.rewriting.exporting.runtime_causes import RuntimeCause

Answer = TypeVar("Answer")
_UNSAVED = "Save {} first: what runs is the file on disk, and it is not what the editor shows."


class Exporting:
    """The sessions (one for each interpreter), and the requests that they serve."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.on_demand: list[Callable[[], None]] = []
        self._sessions: dict[Path, Session] = {}
        self._turns: dict[Path, asyncio.Lock] = {}
        self._used: dict[str, ModelInputs] = {}

    async def models(self, params: Any) -> dict[str, Any]:
        """{uri} -> {models}: what the file defines, with proposed expressions."""
        from exportlens.export.models import find_models

        uri = _field(params, "uri")
        path, text = to_path(uri), self._text(to_path(uri))
        found = await asyncio.to_thread(find_models, path, text)
        lines = Lines(text)
        models = []
        for model in found:
            proposal = model.proposals[0] if model.proposals else None
            models.append(
                {
                    "name": model.name,
                    "uri": uri,
                    "range": _plain_range(to_range(model.range, lines, self.server.encoding)),
                    "init": (proposal.init if proposal else None) or "",
                    "inputs": (proposal.inputs if proposal else None) or "",
                    "kwargs": (proposal.kwargs if proposal else None) or "",
                    "dynamicShapes": (proposal.dynamic_shapes if proposal else None) or "",
                    "dynamicProposed": model.dynamic_shapes or "",
                    "proposedFrom": proposal.source if proposal else "",
                }
            )
        return {"models": models}

    async def targets(self, params: Any) -> dict[str, Any]:
        """{} -> {targets}: each with what to install where it is missing."""
        folders = [to_path(uri) for uri in self.server.workspace.folders]
        near = next(iter(self.server.analysis.open), None) or next(iter(folders), Path.cwd())
        found = await self._session(near).probe()
        targets = []
        for target in found:
            fields = target.to_json()
            targets.append(
                {
                    "name": target.name,
                    "title": fields.get("title") or target.name,
                    "purpose": target.purpose,
                    "available": target.available,
                    "version": fields.get("version"),
                    "install": None if target.available else fields.get("install") or fields.get("message"),
                    "runsHere": bool(fields.get("runs_here", target.available)),
                }
            )
        return {"targets": targets}

    async def export(self, params: Any) -> dict[str, Any]:
        """{uri, model, init?, inputs?, kwargs?, dynamicShapes?, targets, mode?} -> the JSON of `exportlens
        export`, and `report`.
        """
        self._demand()
        request = self._request(params)
        async with self.told(params, f"Exporting {request.name}") as tell:
            report = await self.confirm(request, tell)
        if report.ok:
            self._used[request.model] = request.given
        answer: dict[str, Any] = report.to_json()
        answer["report"] = self._page(report, request)
        answer["meaning"] = self._meaning(report)
        return answer

    async def confirm(self, request: ExportRequest, tell: Callable[[Progress], None]) -> Report:
        """One real export, its failures and what it says of static findings published where the text is still the
        one that was exported.
        """
        from exportlens.counterpart import verdicts, with_fixes

        analysis, session = self.server.analysis, self._session(request.file or Path.cwd())
        before = dict(analysis.open)
        report = await self._cancellable(session, lambda: session.run(request, tell))
        typed_in = {path for path, document in before.items() if analysis.open.get(path) is not document}
        if report.failure is None or report.failure.kind not in ("cancelled", "unavailable"):
            static = [f for f in analysis.static_findings() if f.path not in typed_in]
            report.findings = with_fixes(static, report, lambda failure: self._shown(failure, before))
            findings = [finding for finding in report.findings if finding.path not in typed_in]
            said = verdicts(static, report) if request.file not in typed_in else {}
            self.server.sync.publish(analysis.evidence.take(request.model, findings, said))
        return report

    def _shown(self, failure: Finding, texts: Mapping[Path, Open]) -> list[RuntimeCause]:
        """What torch's words in a failure lead to, for a file that is open."""
        from exportlens.repairing import Repairer

        document = texts.get(failure.path)
        if document is None:
            return []
        try:
            tools = Repairer(document.path, self.server.analysis.config_for(document.path))
            return tools.causes(failure, document.text)
        except Exception as error:  # a report is not lost for the sake of an addition to it
            self.server.log_error(f"no fix for {failure.code}: {type(error).__name__}: {error}")
            return []

    def inputs_used(self, model: str) -> ModelInputs | None:
        """With what `model` (`FILE.py:Name`) exported last in this session."""
        return self._used.get(model)

    def _demand(self) -> None:
        """What the user asks for goes before what runs in the background. Raises where nothing may be run."""
        if not self.server.permissions.trusted:
            raise PermissionError("this workspace is not trusted: exporting a model would run its code")
        for give_way in self.on_demand:
            give_way()

    def _meaning(self, report: Report) -> str | None:
        """Why an export failed, in words for people: the static finding that says so, or what torch's words mean."""
        from exportlens.counterpart import cause
        from exportlens.export.plain_words import meaning

        finding = cause(self.server.analysis.static_findings(), report)
        return finding.message if finding is not None else meaning(report)

    async def repair(self, params: Any) -> dict[str, Any]:
        """{uri, model, ...} -> {ok, steps, edit, message}; nothing is written."""
        from exportlens.export.repair import repair_model
        from exportlens.export.session import Progress
        from exportlens.repairing import Repairer

        self._demand()
        uri = _field(params, "uri")
        path = to_path(uri)
        request, session = self._request(params), self._session(path)
        if self._is_unsaved(path):
            return {"ok": False, "steps": [], "edit": None, "message": _UNSAVED.format(path.name)}
        tools = Repairer(path, self.server.analysis.config_for(path))

        def step_taken(step: Step) -> None:
            tell(Progress("repair", step.fix or _first_line(step.reason)))

        async with self.told(params, f"Making {request.name} exportable") as tell:
            done = await self._cancellable(
                session,
                lambda: repair_model(session, request, tools, step_taken),
            )
        edit = None
        if done.repaired and done.changed:
            unsaved = next((each for each in done.changed if self._is_unsaved(each)), None)
            if unsaved is not None:
                return {"ok": False, "steps": [], "edit": None, "message": _UNSAVED.format(unsaved.name)}
            encoding = self.server.encoding
            changes = {
                uri if each == path else to_uri(each): _line_edits(done.originals[each], text, encoding)
                for each, text in done.changed.items()
            }
            edit = {"changes": changes}
        steps = [
            {"kind": "fix" if s.fix else "stop", "message": _told_step(s), "code": s.code} for s in done.steps
        ]
        return {"ok": done.repaired, "steps": steps, "edit": edit, "message": _outcome(request.name, done)}

    async def verify(self, params: Any) -> dict[str, Any]:
        """{uri, range, code} -> {verified, message}: the fixed model against the original, in both modes. A fix that
        fails is not offered again for this text.
        """
        from exportlens.export.verify import in_both_modes, verify_fix
        from exportlens.fixing import apply_edits

        self._demand()
        path = to_path(_field(params, "uri"))
        document = self.server.analysis.open.get(path)
        finding = None if document is None else await self._finding(document, params)
        if document is None or finding is None or finding.fix is None:
            return {"verified": False, "message": "There is no fix for this finding (any more)."}
        if self._is_unsaved(path):
            return {"verified": False, "message": _UNSAVED.format(path.name)}
        request = request_to_try(finding, path, document.text)
        if request is None:
            message = "No model of this file reaches the finding, so there is nothing to run the fix with."
            return {"verified": False, "message": message}
        fixed = apply_edits(document.text, finding.fix.edits)
        request = in_both_modes(request)
        session = self._session(path)
        async with self.told(params, f"Verifying the fix of {finding.code}") as tell:
            done = await self._cancellable(
                session, lambda: verify_fix(session, request, {path: fixed}, progress=tell)
            )
        message = _verdict(request.name, done)
        holds = done.holds({path: document.text}, {path: fixed})
        if holds is not None and self.server.analysis.is_current(document):
            self.server.analysis.evidence.trials[place_of(finding)] = Trial(holds, message)
            self.server.sync.publish([path])
        withdrawn = "; the fix is withdrawn" if holds is False else ""
        return {"verified": done.verified, "message": f"{message[:1].upper()}{message[1:]}{withdrawn}."}

    async def _finding(self, document: Open, params: Any) -> Finding | None:
        """The finding that a request means by code and line, with its fix."""
        await self.server.analysis.add_fixes(document)
        line = int(_field(_field(_field(params, "range"), "start"), "line"))
        code = _field(params, "code")
        for finding in self.server.analysis.findings_in(document.path):
            if finding.code == code and finding.range.start.line == line:
                return finding
        return None

    async def close(self) -> None:
        """End all workers."""
        for session in self._sessions.values():
            with contextlib.suppress(Exception):
                await session.close()
        self._sessions.clear()

    def _session(self, near: Path) -> Session:
        from exportlens.export.session import Session

        interpreter = self.server.analysis.config_for(near).interpreter
        if interpreter not in self._sessions:
            self._sessions[interpreter] = Session(interpreter)
        return self._sessions[interpreter]

    def _request(self, params: Any) -> ExportRequest:
        from dataclasses import replace

        from exportlens.export.models import proposals_for
        from exportlens.export.request import ExportRequest, ModelInputs

        path = to_path(_field(params, "uri"))
        name = str(_field(params, "model"))
        given = ModelInputs(
            init=_field(params, "init") or None,
            inputs=_field(params, "inputs") or None,
            kwargs=_field(params, "kwargs") or None,
            dynamic_shapes=_field(params, "dynamicShapes") or None,
        )
        folder = Path(tempfile.gettempdir()) / "exportlens" / path.stem
        root = next(
            (to_path(uri) for uri in self.server.workspace.folders if path.is_relative_to(to_path(uri))), None
        )
        mode = _field(params, "mode")
        request = ExportRequest(
            model=name if ":" in name else f"{path}:{name}",
            given=given,
            mode=None if mode in (None, "", "auto") else str(mode),
            targets=tuple(_field(params, "targets") or ("torch",)),
            output=(root / "exported") if root else folder,
            timeout=float(_field(params, "timeout") or 600.0),
        )
        return replace(request, proposals=proposals_for(request))

    def _is_unsaved(self, path: Path) -> bool:
        """Whether the editor shows something else than what would be run."""
        from exportlens.source.files import UnreadableSource, read_source

        document = self.server.analysis.open.get(path)
        try:
            return document is not None and document.text != read_source(path).text
        except UnreadableSource:
            return True

    def _text(self, path: Path) -> str:
        from exportlens.source.files import UnreadableSource, read_source

        if document := self.server.analysis.open.get(path):
            return document.text
        try:
            return read_source(path).text
        except UnreadableSource as error:
            self.server.log_error(str(error))
            return ""

    def _page(self, report: Any, request: ExportRequest) -> str | None:
        write_page = _optional("exportlens.export.page", "write_page")
        if write_page is None:
            return None
        try:
            folder = request.output or Path(tempfile.gettempdir())
            folder.mkdir(parents=True, exist_ok=True)
            page = folder / f"{request.name}.html"
            write_page(report, page)
        except OSError as error:
            self.server.log_error(f"the report could not be written: {error}")
            return None
        return str(page)

    async def _cancellable(self, session: Session, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """Await `work` when its turn comes; when the editor cancels, what runs for it ends at once."""
        async with self._turns.setdefault(session.interpreter, asyncio.Lock()):
            try:
                return await work()
            except asyncio.CancelledError:
                session.cancel()
                raise

    @contextlib.asynccontextmanager
    async def told(self, params: Any, title: str) -> AsyncIterator[Callable[[Progress], None]]:
        """Progress to the editor, under its token or one of ours."""
        token = _field(params, "workDoneToken")
        progress = self.server.work_done_progress
        if token is None:
            window = self.server.client_capabilities.window
            if window and window.work_done_progress:
                token = f"exportlens-{uuid.uuid4()}"
                await progress.create_async(token)
        if token is not None:
            progress.begin(token, types.WorkDoneProgressBegin(title=title, cancellable=True))

        def tell(step: Progress) -> None:
            if step.stage == "log":
                if step.log:
                    self.server.window_log_message(types.LogMessageParams(types.MessageType.Log, step.log))
            elif token is not None:
                words = f"{step.stage} {step.subject}".strip()
                progress.report(token, types.WorkDoneProgressReport(message=words, cancellable=True))

        try:
            yield tell
        finally:
            if token is not None:
                progress.end(token, types.WorkDoneProgressEnd())


def register(server: Server) -> None:
    """Register the features of this file: each as a request and as a command of the same name."""
    from exportlens.lsp.confirming import Confirming

    exporting = Exporting(server)
    confirming = Confirming(server, exporting)
    exporting.on_demand.append(confirming.give_way)
    server.sync.on_save.append(confirming.saved)
    requests = {
        "exportlens/models": exporting.models,
        "exportlens/targets": exporting.targets,
        "exportlens/export": exporting.export,
        "exportlens/repair": exporting.repair,
        "exportlens/verify": exporting.verify,
    }
    for name, answer in requests.items():
        _register(server, name, answer)
    # What lenses and code actions name. An editor with an extension asks and shows in its own way; for all others the
    # server runs them with what it proposes, and says how they ended.
    _register_told(server, "exportlens.export", exporting.export, _export_told)
    _register_told(server, "exportlens.verifyFix", exporting.verify, lambda answer: str(answer["message"]))

    @server.feature(types.SHUTDOWN)
    async def shutdown(_: Any) -> None:
        confirming.give_way()
        await exporting.close()


def _register(server: Server, name: str, answer: Callable[[Any], Any]) -> None:
    async def request(params: Any) -> Any:
        return await answer(params)

    async def command(arguments: Any = None) -> Any:
        return await answer(arguments if arguments is not None else {})

    server.feature(name)(request)
    server.command(name)(command)


def _register_told(
    server: Server, name: str, answer: Callable[[Any], Any], words: Callable[[dict[str, Any]], str]
) -> None:
    async def command(arguments: Any = None) -> Any:
        result = await answer(arguments if arguments is not None else {})
        good = result.get("ok", result.get("verified"))
        kind = types.MessageType.Info if good else types.MessageType.Warning
        server.window_show_message(types.ShowMessageParams(kind, f"ExportLens: {words(result)}"))
        return result

    server.command(name)(command)


def _export_told(answer: dict[str, Any]) -> str:
    """How an export ended, for an editor that shows messages and nothing else."""
    name = str(answer["model"]).rpartition(":")[2]
    if answer["ok"]:
        return f"{name} exports, and equals eager."
    failures = [answer["failure"], *(target["failure"] for target in answer["targets"])]
    told = next((failure["message"] for failure in failures if failure), "its report says why")
    return f"{name} does not export: {_first_line(answer['meaning'] or told)}"


def _verdict(name: str, done: VerifyReport) -> str:
    """What a verification came to, in one sentence."""
    if done.verified:
        return f"{name} exports with this fix, and equals the original"
    if done.failure is not None:
        return done.failure.message
    if not done.equal:
        return f"with this fix {name} computes something else than the original"
    failing = [mode for mode, facts in done.modes.items() if not facts.get("ok")]
    return (
        f"{name} equals the original with this fix, but still fails in {' and '.join(failing)} mode; "
        "it may need other fixes, too"
    )


def _optional(module: str, name: str) -> Callable[..., Any] | None:
    """A function of a part that an installation may lack."""
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None
    return found


def _outcome(name: str, done: Repair) -> str:
    """How a repair ended, in a sentence."""
    after = f"{done.fixes} fix{'' if done.fixes == 1 else 'es'}"
    if done.repaired and not done.changed:
        return f"{name} exports and equals eager: nothing to repair."
    if done.repaired:
        return f"{name} exports and equals the original after {after}."
    if not done.could_run:
        return f"{name} cannot be run, so there is nothing to repair yet: {_first_line(done.reason)}"
    return f"{name} was left as it is; after {after} there is still: {_first_line(done.reason)}"


def _told_step(step: Step) -> str:
    where = f"{step.path.name}, line {step.line}: " if step.path and step.line else ""
    return (
        f"{where}{_first_line(step.reason)}"
        + (f" -> {step.fix}" if step.fix else "")
        + (f" (withdrawn: {_first_line(step.withdrawn)})" if step.withdrawn else "")
    )


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _field(params: Any, name: str) -> Any:
    """A field of a request; custom requests arrive as named tuples, commands as dictionaries."""
    if isinstance(params, Mapping):
        return params.get(name)
    return getattr(params, name, None)


def _plain_range(place: types.Range) -> dict[str, Any]:
    ends = {"start": place.start, "end": place.end}
    return {name: {"line": end.line, "character": end.character} for name, end in ends.items()}


def _line_edits(old: str, new: str, encoding: Any) -> list[dict[str, Any]]:
    """The edits, by whole lines, from the one text to the other: what changed is what a preview shows."""
    import difflib

    from exportlens.finding import Position, Range

    lines = Lines(old)
    last = len(lines) - 1
    end = Position(last, len(lines.line(last)))
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    edits = []
    for kind, start, stop, first, past in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if kind != "equal":
            place = Range(min(Position(start, 0), end), min(Position(stop, 0), end))
            text = "".join(after[first:past])
            edits.append({"range": _plain_range(to_range(place, lines, encoding)), "newText": text})
    return edits
