"""Between our findings and the words of LSP: positions in the negotiated encoding, diagnostics, edits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris

from exportlens.export.findings import LEFT_TO_CPU
from exportlens.finding import Edit, Finding, Fix, Position, Range, Severity
from exportlens.interchange import fix_json
from exportlens.source.positions import Encoding, Lines, from_units, to_units

SOURCE = "exportlens"
_SEVERITY = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
}
_HINT = types.DiagnosticSeverity.Hint


def to_path(uri: str) -> Path:
    """The path that stands for `uri`; a document that is on no disk gets one below `/untitled`."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    if path:
        return Path(path)
    name = uri.rpartition(":")[2].strip("/").replace("/", "_") or "document"
    return Path("/untitled") / (name if name.endswith(".py") else f"{name}.py")


def to_uri(path: Path) -> str:
    """The URI of a file, as editors write it."""
    return uris.from_fs_path(str(path)) or path.as_uri()


def to_encoding(kind: types.PositionEncodingKind | str | None) -> Encoding:
    """The negotiated encoding; UTF-16 where nothing was negotiated."""
    value = kind.value if isinstance(kind, types.PositionEncodingKind) else kind
    return "utf-8" if value == "utf-8" else "utf-32" if value == "utf-32" else "utf-16"


def to_position(position: Position, lines: Lines, encoding: Encoding) -> types.Position:
    """Our position (code points) as LSP's."""
    return types.Position(position.line, to_units(lines.line(position.line), position.column, encoding))


def to_range(place: Range, lines: Lines, encoding: Encoding) -> types.Range:
    """Our range as LSP's."""
    return types.Range(to_position(place.start, lines, encoding), to_position(place.end, lines, encoding))


def from_position(position: types.Position, lines: Lines, encoding: Encoding) -> Position:
    """LSP's position as ours."""
    return Position(position.line, from_units(lines.line(position.line), position.character, encoding))


def from_range(place: types.Range, lines: Lines, encoding: Encoding) -> Range:
    """LSP's range as ours."""
    return Range(from_position(place.start, lines, encoding), from_position(place.end, lines, encoding))


def to_diagnostic(finding: Finding, lines: Lines, encoding: Encoding) -> types.Diagnostic:
    """A finding as a diagnostic; `data` carries the rule's name, the notes, the entry points and the fix."""
    data: dict[str, Any] = {"name": finding.name, "notes": list(finding.notes), "entry": list(finding.entry)}
    data["fix"] = None if finding.fix is None else fix_json(finding.fix)
    if finding.data:
        data["details"] = dict(finding.data)
    return types.Diagnostic(
        range=to_range(finding.range, lines, encoding),
        message="\n".join([finding.message, *finding.notes]),
        severity=_HINT if finding.code == LEFT_TO_CPU else _SEVERITY[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(finding.url) if finding.url else None,
        source=SOURCE,
        data=data,
    )


def to_text_edits(edits: Iterable[Edit], lines: Lines, encoding: Encoding) -> list[types.TextEdit]:
    """Edits of one document."""
    return [types.TextEdit(to_range(edit.range, lines, encoding), edit.content) for edit in edits]


def own_edits(fix: Fix, path: Path) -> list[Edit] | None:
    """The edits of `fix` when all are in the document at `path`; None when it edits other files, too."""
    return None if any(edit.path not in (None, path) for edit in fix.edits) else list(fix.edits)
