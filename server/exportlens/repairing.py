"""What a repair asks of the engine and the rewrites: a text's findings, a fix applied, a known cause."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from exportlens.config import Config
from exportlens.engine import Engine
from exportlens.finding import Finding
from exportlens.fixing import apply_edits
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.runtime_causes import RuntimeCause, cause_of
from exportlens.source.document import Document


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

    @staticmethod
    def apply(text: str, finding: Finding) -> str:
        """The text with the finding's fix, or as it is where there is none."""
        return apply_edits(text, finding.fix.edits) if finding.fix is not None else text

    def known_cause(self, text: str, message: str, line: int) -> tuple[str, str, str] | None:
        """Code, description and fixed text where torch's `message` at `line` (from 0) names a known cause."""
        context = RewriteContext(
            Document.parse(self.path, text), self.config.torch_version, self.config.modes
        )
        cause = cause_of(message, line, context)
        if not isinstance(cause, RuntimeCause):
            return None
        return cause.code, cause.fix.message, apply_edits(text, cause.fix.edits)
