"""Trying a fix: with which model, and what its verification says of the fix itself."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from exportlens.finding import Finding

if TYPE_CHECKING:
    from exportlens.export.verify import VerifyReport

_OF_THE_FIX = "the fixed model"
"""How the worker begins a failure that the original does not have."""


def model_reaching(finding: Finding, path: Path) -> str | None:
    """The name of a model of the file at `path` that reaches the finding."""
    entries = [entry for entry in finding.entry if entry.startswith(f"{path}:")]
    return entries[0].rpartition(":")[2] if entries else None


def holding(done: VerifyReport, original: str, fixed: str) -> bool | None:
    """Whether a fix holds. None where its trial says nothing of it: the original cannot be run, the time was up, or
    what the export refuses lies elsewhere.
    """
    if done.verified:
        return True
    if done.failure is not None:
        of_the_fix = done.failure.message.startswith(_OF_THE_FIX) or done.failure.kind == "mismatch"
        return False if of_the_fix else None
    if not done.equal:
        return False
    matcher = difflib.SequenceMatcher(None, original.splitlines(), fixed.splitlines(), False)
    changed = {
        line
        for kind, _, _, first, past in matcher.get_opcodes()
        if kind != "equal"
        for line in range(first + 1, past + 1)
    }
    failures = [mode["failure"] for mode in done.modes.values() if not mode["ok"]]
    refused = [
        (blame.get("frame") or {}).get("line") for failure in failures for blame in failure.get("blame") or []
    ]
    return False if changed.intersection(refused) else None
