"""What a repair asks of the engine and the rewrites: findings, a fix applied, a known cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from exportlens.checking import Sources, make_engine
from exportlens.config import BadSetting, Config, load_config
from exportlens.counterpart import with_fixes
from exportlens.export.repair import KnownCause
from exportlens.export.session import project_root
from exportlens.export.verify import Texts
from exportlens.finding import Finding, Refusal, Severity
from exportlens.fixing import apply_edits, apply_fixes
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.exporting.export_calls import trace_in_mode
from exportlens.rewriting.exporting.runtime_causes import RuntimeCause, causes_of
from exportlens.source.document import Document

if TYPE_CHECKING:
    from exportlens.export.report import Report


@dataclass
class Repairer:
    """The engine's part in the repair of the models of one file, under one configuration."""

    path: Path
    config: Config

    def __post_init__(self) -> None:
        self._engine = make_engine(self.config, Sources(), project_root(self.path))

    def diagnose(self, texts: Texts) -> list[Finding]:
        """The findings that the file leads to where the files of `texts` have those, with their fixes."""
        for path, text in texts.items():
            self._engine.update(path, text)
        return self._engine.with_fixes(self._engine.check(self.path))

    def apply(self, texts: Texts, finding: Finding) -> Texts:
        """The texts with the finding's fix, or as they are where there is none."""
        edits = finding.fix.edits if finding.fix is not None else ()
        touched = dict.fromkeys(edit.path or finding.path for edit in edits)
        return {
            path: apply_edits(texts[path], [edit for edit in edits if (edit.path or finding.path) == path])
            for path in touched
        }

    def apply_together(self, path: Path, text: str, findings: Sequence[Finding]) -> str:
        """The text of the file at `path` with the fixes of several findings in it, as many as go together."""
        return apply_fixes(path, text, findings).text

    def other_mode(self, text: str, strict: bool, line: int) -> KnownCause | None:
        """The export call of the file on `line` (from 0) with the only mode that takes the model."""
        fix = trace_in_mode(strict, line, self._context(self.path, text))
        if isinstance(fix, Refusal):
            return None
        return KnownCause("strict", fix.message, {self.path: apply_edits(text, fix.edits)})

    def _context(self, path: Path, text: str) -> RewriteContext:
        document = Document.parse(path, text)
        return RewriteContext(document, self.config.torch_version, self.config.modes)

    def known_causes(self, path: Path, text: str, words: str, line: int | None) -> Iterator[KnownCause]:
        """The ways out that torch's `words` at `line` (from 0) of the file lead to, best first."""
        for cause in causes_of(words, line, self._context(path, text)):
            yield KnownCause(cause.code, cause.fix.message, {path: apply_edits(text, cause.fix.edits)})

    def causes(self, failure: Finding, text: str) -> list[RuntimeCause]:
        """The ways out that torch's words in an export's finding lead to, best first, where the file has `text`."""
        words = failure.data.get("torch", "")
        return (
            list(causes_of(words, failure.range.start.line, self._context(self.path, text))) if words else []
        )


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
            known += own.diagnose({path: text})
            tools[path] = own, text
        except (BadSetting, OSError, UnicodeDecodeError, RecursionError):
            continue  # a file that cannot be checked has no fixes

    def shown(failure: Finding) -> list[RuntimeCause]:
        own = tools.get(failure.path)
        return own[0].causes(failure, own[1]) if own is not None else []

    return with_fixes(known, report, shown)
