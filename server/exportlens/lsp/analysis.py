"""The analysis behind the editor: engines, the one thread that they run on, and what was found where."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from exportlens.checking import Sources, internal_error, kept, make_engine, merged
from exportlens.config import BadSetting, Config, load_config
from exportlens.engine import Cancelled, Engine
from exportlens.finding import Finding
from exportlens.lsp.evidence import Evidence
from exportlens.source.files import LIMIT
from exportlens.source.positions import Lines

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Open:
    """A document as the editor has it. `key` is unique among all edits of all documents."""

    path: Path
    uri: str
    text: str
    version: int | None
    key: int

    @functools.cached_property
    def lines(self) -> Lines:
        return Lines(self.text)


@dataclass
class Analysis:
    """What is open, and what was found. Its methods run on the event loop; only `_check` and `_fixes` run on
    the thread.
    """

    log: Callable[[str], None]
    complain: Callable[[str], None]
    open: dict[Path, Open] = field(default_factory=dict)
    found: dict[Path, list[Finding]] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)
    settings: dict[str, Any] = field(default_factory=dict)
    _engines: dict[str, Engine] = field(default_factory=dict)
    _by_folder: dict[Path, Engine] = field(default_factory=dict)
    _sources: Sources = field(default_factory=Sources)
    _thread: concurrent.futures.ThreadPoolExecutor = field(
        default_factory=lambda: concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="analysis")
    )
    _keys: int = 0
    _complaint: str = ""

    # --- documents ---

    def put(self, uri: str, path: Path, text: str, version: int | None) -> Open:
        """Take a document's text as it is now; what runs for an older one is dropped."""
        self._keys += 1
        document = self.open[path] = Open(path, uri, text, version, self._keys)
        self._sources.given[path] = text
        self.evidence.forget(path)
        return document

    def drop(self, path: Path) -> set[Path]:
        """Forget a closed document; returns the paths whose findings changed."""
        self.open.pop(path, None)
        self._sources.given.pop(path, None)
        gone = self.found.pop(path, [])
        self._thread.submit(self._forget, [path])
        return {path, *(finding.path for finding in gone)}

    def changed_on_disk(self, paths: Iterable[Path]) -> None:
        """Some files that no editor holds have changed."""
        self._thread.submit(self._forget, [path for path in paths if path not in self.open])

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take the editor's settings; engines are made anew."""
        self.settings = dict(settings)
        self._complaint = ""
        self._thread.submit(self._forget_engines)

    def is_current(self, document: Open) -> bool:
        """Whether `document` is what the editor still shows."""
        return self.open.get(document.path) is document

    # --- findings ---

    def findings_in(self, path: Path) -> list[Finding]:
        """All that is known of `path`: from its own check, from others that call it, and from exports."""
        found = merged([*self.static_findings(path), *self.evidence.found_in(path)])
        return [self.evidence.applied_to(finding) for finding in found]

    def static_findings(self, path: Path | None = None) -> list[Finding]:
        """What checks found, in `path` or anywhere."""
        return merged(
            finding
            for findings in self.found.values()
            for finding in findings
            if path is None or finding.path == path
        )

    async def check(self, document: Open) -> set[Path] | None:
        """Check one document, without fixes; returns the paths whose findings changed, None when it is no
        longer what is shown.
        """
        findings = await self._run(self._check, document)
        if findings is None or not self.is_current(document):
            return None
        return self._replace(document, findings)

    async def add_fixes(self, document: Open) -> set[Path] | None:
        """Find the fixes of a document's findings; as `check`."""
        bare = self.found.get(document.path, [])
        findings = await self._run(self._fixes, document, bare)
        if findings is None or not self.is_current(document) or self.found.get(document.path) is not bare:
            return None
        if findings == bare:
            return set()
        return self._replace(document, findings)

    async def explain(self, document: Open, line: int) -> list[str]:
        """What is believed of the values on a line (from 0)."""
        return await self._run(self._explain, document, line)

    def config_for(self, path: Path) -> Config:
        """The configuration for `path`; where a setting is bad the user is told once, and defaults hold."""
        try:
            return load_config(path, self.settings, origin="editor settings")
        except BadSetting as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                self.complain(f"{error}. Until then ExportLens goes by its defaults")
            return Config(root=path.parent)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[..., Answer], *args: Any) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _replace(self, document: Open, findings: list[Finding]) -> set[Path]:
        before = self.found.get(document.path, [])
        self.found[document.path] = findings
        return {document.path, *(finding.path for finding in [*before, *findings])}

    # --- on the thread ---

    def _check(self, document: Open) -> list[Finding] | None:
        if not self.is_current(document):
            return None
        if len(document.text) > LIMIT:
            self.log(f"{document.path} is too large to be checked ({len(document.text):,} characters)")
            return []
        try:
            engine = self._engine(document.path)
            self._update(engine, document)
            found = engine.check(document.path, lambda: not self.is_current(document))
            return kept(found, engine.config, self._sources)
        except Cancelled:
            return None
        except Exception as error:
            self.log(internal_error(document.path, error))
            return []

    def _fixes(self, document: Open, findings: list[Finding]) -> list[Finding] | None:
        engine = self._engine(document.path)
        fixed: list[Finding] = []
        for finding in findings:
            try:
                fixed += engine.with_fixes([finding], lambda: not self.is_current(document))
            except Cancelled:
                return None
            except Exception as error:
                self.log(internal_error(document.path, error))
                fixed.append(finding)
        return fixed

    def _explain(self, document: Open, line: int) -> list[str]:
        if not self.is_current(document):
            return []
        try:
            return self._engine(document.path).explain(document.path, line)
        except Exception as error:
            self.log(internal_error(document.path, error))
            return []

    def _update(self, engine: Engine, document: Open) -> None:
        for other in list(self.open.values()):
            concerns = other is document or other.path.parent in self._by_folder
            known = engine.document(other.path) if concerns else None
            stale = known is not None and known.text != other.text
            if stale or (other is document and (known is None or known.version != other.version)):
                engine.update(other.path, other.text, other.version)

    def _engine(self, path: Path) -> Engine:
        engine = self._by_folder.get(path.parent)
        if engine is None:
            config = self.config_for(path)
            engine = self._engines.get(config.fingerprint())
            if engine is None:
                engine = self._engines[config.fingerprint()] = make_engine(config, self._sources)
            self._by_folder[path.parent] = engine
        return engine

    def _forget(self, paths: list[Path]) -> None:
        for path in paths:
            self._sources.files.pop(path, None)
            self._sources.notebooks.pop(path, None)
            for engine in self._engines.values():
                engine.forget(path)

    def _forget_engines(self) -> None:
        self._engines.clear()
        self._by_folder.clear()
