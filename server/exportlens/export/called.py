"""The export calls of a file: which model each exports with what, and what a fix made of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exportlens.export.models import FileNames
from exportlens.export.proposals import Proposer
from exportlens.export.request import ModelInputs
from exportlens.source.parsing import parse_python


@dataclass(frozen=True, slots=True)
class Exported:
    """One export call: the model's name in the file, how it is made and called, the lines of the call (from 1),
    and what it says of `strict`.
    """

    name: str
    inputs: ModelInputs
    first_line: int
    last_line: int
    strict: bool | None = None


def exported_models(path: Path, text: str) -> list[Exported]:
    """The export calls of `text` in order, those left out whose model cannot be named from outside of the call.

    Runs nothing. A file that does not parse has none.
    """
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = Proposer(path, tree, FileNames(tree)).exported()
    return [
        Exported(name, inputs, call.lineno, call.end_lineno or call.lineno, _strict(call))
        for call, name, inputs in found
    ]


def _strict(call: ast.Call) -> bool | None:
    given = next((key.value for key in call.keywords if key.arg == "strict"), None)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, bool) else None


def counterparts(path: Path, original: str, fixed: str) -> dict[str, dict[str, Any]]:
    """What a fix changed in the export calls: for the source of each proposal that is one, the name and the
    expressions that stand there now. Nothing where the calls of the two texts cannot be told to belong together.
    """
    before, after = exported_models(path, original), exported_models(path, fixed)
    if len(before) != len(after):
        return {}
    changed: dict[str, dict[str, Any]] = {}
    for old, new in zip(before, after, strict=True):
        if (old.name, replace(old.inputs, source="", line=None)) != (
            new.name,
            replace(new.inputs, source="", line=None),
        ):
            words = {
                key: value for key, value in new.inputs.to_json().items() if key not in ("source", "line")
            }
            changed[old.inputs.source] = {"name": new.name, **words}
    return changed
