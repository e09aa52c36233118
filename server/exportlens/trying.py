"""Trying a fix: with which model of the file, called as the file itself calls it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from exportlens.finding import Finding

if TYPE_CHECKING:
    from exportlens.export.request import ExportRequest


def model_reaching(finding: Finding, path: Path) -> str | None:
    """The name of a model of the file at `path` that reaches the finding."""
    names = [
        entry.rpartition(":")[2].removesuffix(".forward")
        for entry in finding.entry
        if entry.startswith(f"{path}:")
    ]
    return names[0] if names else None


def request_to_try(finding: Finding, path: Path, text: str) -> ExportRequest | None:
    """What to run a fix in `text`, the content of `path`, with: the model of the export call that the finding lies
    in, else one that reaches it; None where there is none.
    """
    from exportlens.export.called import exported_models
    from exportlens.export.models import find_models
    from exportlens.export.request import ExportRequest

    first, last = finding.range.start.line + 1, finding.range.end.line + 1
    calls = exported_models(path, text)
    here = [call for call in calls if first <= call.last_line and call.first_line <= last]
    reaching = model_reaching(finding, path)
    if here and reaching is None:
        return ExportRequest(f"{path}:{here[0].name}", proposals=(here[0].inputs,))
    if reaching is None:
        return None
    request = ExportRequest(f"{path}:{reaching}")
    known = next((model.proposals for model in find_models(path, text) if model.name == reaching), ())
    from_calls = tuple(call.inputs for call in calls if call.name == reaching)
    return replace(request, proposals=tuple(dict.fromkeys((*known, *from_calls))))
