"""`[tool.exportlens.models]` in pyproject.toml: the inputs that a project states for its models."""

from __future__ import annotations

import json
import os
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exportlens.export.request import ModelInputs

if TYPE_CHECKING:
    from exportlens.export.report import Report
    from exportlens.export.request import ExportRequest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIELDS = ("init", "inputs", "kwargs", "dynamic_shapes")


def nearest_pyproject(path: Path) -> Path | None:
    """The pyproject.toml at or above `path`."""
    start = path if path.is_dir() else path.parent
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / "pyproject.toml").is_file():
            return folder / "pyproject.toml"
    return None


@lru_cache(maxsize=64)
def _tables(file: str, stamp: int) -> dict[str, Any]:
    try:
        data = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    tables = data.get("tool", {}).get("exportlens", {}).get("models", {})
    return tables if isinstance(tables, dict) else {}


def configured_inputs(path: Path, model: str) -> ModelInputs | None:
    """What the nearest pyproject.toml states for `model` (`FILE.py:Name`, the file relative to it, or
    dotted).
    """
    pyproject = nearest_pyproject(path)
    if pyproject is None:
        return None
    place, _, name = model.rpartition(":")
    keys = [model]
    if place.endswith(".py"):
        relative = os.path.relpath(os.path.abspath(place), pyproject.parent).replace(os.sep, "/")
        keys = [f"{relative}:{name}", f"./{relative}:{name}", model]
    tables = _tables(str(pyproject), pyproject.stat().st_mtime_ns)
    for key in keys:
        table = tables.get(key)
        if isinstance(table, dict):
            words: dict[str, Any] = {
                field: str(table[field]) for field in FIELDS if table.get(field) is not None
            }
            return ModelInputs(**words, source=f"[tool.exportlens.models] in {pyproject.name}")
    return None


def save_chosen(request: ExportRequest, report: Report) -> Path:
    """Save the inputs with which a confirmation ran in eager; returns the pyproject.toml.

    Raises ValueError where eager took none, or the model is named by package; OSError where it cannot be written.
    """
    if request.file is None:
        raise ValueError(f"{request.model} is named by package, and so belongs to no pyproject.toml")
    if report.chosen is None:
        raise ValueError("eager took none of them")
    words: dict[str, Any] = {field: report.chosen.get(field) for field in FIELDS}
    return save_inputs(request.file, f"{request.file}:{request.name}", ModelInputs(**words))


def save_inputs(path: Path, model: str, inputs: ModelInputs) -> Path:
    """Write what worked for `model` into the nearest pyproject.toml (made beside the file where there is
    none).

    An existing table of this model is replaced; everything else keeps its text. Returns the file.
    """
    pyproject = nearest_pyproject(path) or path.parent / "pyproject.toml"
    text = pyproject.read_text(encoding="utf-8") if pyproject.exists() else ""
    place, _, name = model.rpartition(":")
    if place.endswith(".py"):
        place = os.path.relpath(os.path.abspath(place), pyproject.parent).replace(os.sep, "/")
    header = f"[tool.exportlens.models.{json.dumps(f'{place}:{name}')}]"
    block = "\n".join(
        [header, *(f"{f} = {json.dumps(v)}" for f in FIELDS if (v := getattr(inputs, f)) is not None)]
    )
    existing = re.compile(rf"^{re.escape(header)}[^\n]*\n(?:(?!\[)[^\n]*\n?)*", re.M)
    if existing.search(text):
        text = existing.sub(lambda _: block + "\n\n", text, count=1).rstrip("\n") + "\n"
    else:
        text = text.rstrip("\n") + ("\n\n" if text.strip() else "") + block + "\n"
    part = pyproject.with_name(pyproject.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, pyproject)
    return pyproject
