"""What a repair asks of the engine and the rewrites: a text's findings, a fix applied, a known cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from exportlens.config import BadSetting, Config, load_config
from exportlens.counterpart import with_fixes
from exportlens.engine import Engine
from exportlens.export.repair import KnownCause
from exportlens.finding import Finding, Refusal, Severity
from exportlens.fixing import apply_edits
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.export_calls import trace_in_mode
from exportlens.rewriting.runtime_causes import RuntimeCause, causes_of
from exportlens.source.document import Document

if TYPE_CHECKING:
    from exportlens.export.report import Report


@dataclass
class Repairer:
    """The engine's part in the repair of one file, under one configuration."""

    path: Path
    config: Config

    def __post_init__(self) -> None:
        self._engine = Engine(self.config)

    def diagnose(self, path: Path, text: str) -> list[Finding]:
        """The findings of `text` as the content of `path`, with their fixes."""
        self._engine.update(path, text)
        return self._engine.with_fixes(self._engine.check(path))

    def apply(self, text: str, finding: Finding) -> str:
        """The text with the finding's fix, or as it is where there is none, or one of another file, too."""
        if finding.fix is None or any(edit.path not in (None, self.path) for edit in finding.fix.edits):
            return text
        return apply_edits(text, finding.fix.edits)

    def other_mode(self, text: str, strict: bool, line: int) -> KnownCause | None:
        """The export call on `line` (from 0) with the only mode that takes the model."""
        context = self._context(text)
        fix = trace_in_mode(strict, line, context)
        if isinstance(fix, Refusal):
            return None
        return KnownCause("strict", fix.message, apply_edits(text, fix.edits))

    def _context(self, text: str) -> RewriteContext:
        document = Document.parse(self.path, text)
        return RewriteContext(document, self.config.torch_version, self.config.modes)

    def known_causes(self, text: str, words: str, line: int | None) -> Iterator[KnownCause]:
        """The ways out that torch's `words` at `line` (from 0) lead to, best first."""
        for cause in causes_of(words, line, self._context(text)):
            yield KnownCause(cause.code, cause.fix.message, apply_edits(text, cause.fix.edits))

    def causes(self, failure: Finding, text: str) -> list[RuntimeCause]:
        """The ways out that torch's words in an export's finding lead to, best first, where the file has `text`."""
        words = failure.data.get("torch", "")
        return list(causes_of(words, failure.range.start.line, self._context(text))) if words else []


def findings_with_fixes(report: Report, mode: str | None) -> list[Finding]:
    """The report's findings with the fixes of the rules that know their causes; `mode` is the one asked for."""
    blamed = {finding.path for finding in report.findings if finding.severity is Severity.ERROR}
    known: list[Finding] = []
    tools: dict[Path, tuple[Repairer, str]] = {}
    for path in sorted(blamed):
        if "site-packages" in path.parts:
            continue  # nobody mends what a package brought
        try:
            own, text = Repairer(path, load_config(path, {"mode": mode})), path.read_text(encoding="utf-8")
            known += own.diagnose(path, text)
            tools[path] = own, text
        except (BadSetting, OSError, UnicodeDecodeError, RecursionError):
            continue  # a file that cannot be checked has no fixes

    def shown(failure: Finding) -> list[RuntimeCause]:
        own = tools.get(failure.path)
        return own[0].causes(failure, own[1]) if own is not None else []

    return with_fixes(known, report, shown)
