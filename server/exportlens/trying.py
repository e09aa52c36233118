"""Trying a fix: with which model of the file, called as the file itself calls it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from exportlens.finding import Finding

if TYPE_CHECKING:
    from exportlens.export.called import Exported
    from exportlens.export.request import ExportRequest


def model_reaching(finding: Finding, path: Path) -> str | None:
    """The name of a model of the file at `path` that reaches the finding."""
    names = [
        entry.rpartition(":")[2].removesuffix(".forward")
        for entry in finding.entry
        if entry.startswith(f"{path}:")
    ]
    return names[0] if names else None


def can_be_tried(finding: Finding, path: Path, text: str) -> bool:
    """Whether `text`, the content of `path`, has a model to try a fix with."""
    return model_reaching(finding, path) is not None or bool(_calls_around(finding, path, text))


def request_to_try(finding: Finding, path: Path, text: str) -> ExportRequest | None:
    """What to run a fix in `text`, the content of `path`, with: the model of the export call that the finding lies
    in, else one that reaches it; None where there is none.
    """
    from exportlens.export.called import exported_models
    from exportlens.export.models import find_models
    from exportlens.export.request import ExportRequest

    here, calls = _calls_around(finding, path, text), exported_models(path, text)
    reaching = model_reaching(finding, path)
    if here and reaching is None:
        return ExportRequest(f"{path}:{here[0].name}", proposals=(here[0].inputs,))
    if reaching is None:
        return None
    request = ExportRequest(f"{path}:{reaching}")
    known = next((model.proposals for model in find_models(path, text) if model.name == reaching), ())
    from_calls = tuple(call.inputs for call in calls if call.name == reaching)
    return replace(request, proposals=tuple(dict.fromkeys((*known, *from_calls))))


def _calls_around(finding: Finding, path: Path, text: str) -> list[Exported]:
    """The export calls that the finding, or its fix, lies in."""
    from exportlens.export.called import exported_models

    edits = finding.fix.edits if finding.fix is not None else ()
    places = [finding.range, *(edit.range for edit in edits if edit.path in (None, path))]
    return [
        call
        for call in exported_models(path, text)
        if any(
            place.start.line + 1 <= call.last_line and call.first_line <= place.end.line + 1
            for place in places
        )
    ]
