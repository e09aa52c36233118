"""The other failures of a model: torch's draft export goes on where export stops, and tells each place."""

from __future__ import annotations

from typing import Any

from exportlens.export.worker.blame import Frame, Owner
from exportlens.export.worker.cases import Case
from exportlens.export.worker.loading import seed_all
from exportlens.export.worker.preparing import prepare
from exportlens.export.worker.stages import StageError, Stages


def draft_operation(request: dict[str, Any], stages: Stages, owner: Owner) -> None:
    """The request `draft`: one entry per failure that draft export met, with its place, expression and
    values.
    """
    prepared = prepare(request, stages)
    stages.enter("draft")
    try:
        from torch.export import draft_export
    except ImportError as error:
        raise StageError(
            "unavailable", "this torch has no draft_export (2.6 is the first that has)"
        ) from error
    args, kwargs = Case("", prepared.inputs.args, prepared.inputs.kwargs, 0).inputs()
    seed_all(0)
    program = draft_export(
        prepared.subject.copy(), args, kwargs, dynamic_shapes=prepared.inputs.dynamic_shapes
    )
    report = getattr(program, "_report", None)
    files = getattr(report, "str_to_filename", {})
    entries = [_entry(failure, files, owner) for failure in getattr(report, "failures", [])]
    stages.put("draft", entries)


def _frames(stack: Any, files: dict[Any, str]) -> list[Frame]:
    """A stack of the report's: dicts whose file is a number, named in the report's own table."""
    found: list[Frame] = []
    for item in stack or []:
        if not isinstance(item, dict):
            continue
        file = item.get("filename")
        name = (
            file if isinstance(file, str) and not file.isdigit() else files.get(str(file)) or files.get(file)
        )
        if name:
            found.append({"file": name, "line": item.get("line", 1), "function": item.get("name", "")})
    return found


def _entry(failure: Any, files: dict[Any, str], owner: Owner) -> dict[str, Any]:
    """One failure of `program._report.failures` as a blame entry."""
    data = failure.data
    kind = getattr(failure.failure_type, "name", str(failure.failure_type)).lower().replace("_", " ")
    frames = _frames(data.get("user_stack"), files) + _frames(data.get("stack"), files)
    said = data.get("expr") or data.get("op") or data.get("reason") or ""
    known = (data.get("frame_locals") or {}).get("locals") or {}
    values = ", ".join(f"{name} = {value}" for name, value in known.items())
    try:
        detail = failure.print(files)
    except Exception:
        detail = f"{kind}: {said}"
    return {
        "type": kind,
        "message": f"{kind}: {said}" if said else kind,
        "detail": detail,
        "frame": owner.best(frames),
        "values": values[:300],
    }
