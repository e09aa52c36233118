"""The words that every room shares: positions, findings, fixes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path


class Severity(enum.Enum):
    """How much a finding matters; errors and warnings make the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"


class Applicability(enum.Enum):
    """Whether a fix may be applied unseen, in ruff's words."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY_ONLY = "display-only"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text: line and column count from 0, the column in code points."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A stretch of text from `start` up to, not including, `end`."""

    start: Position
    end: Position

    def overlaps(self, other: Range) -> bool:
        """Whether the two share text, or are insertions at the same place."""
        if self.start == other.start:
            return True
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `range` by `content`; an empty range inserts. `path` is None for the finding's own document."""

    range: Range
    content: str
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together, and whether they may change what the program computes.

    `alternatives` are other ways to mend the same, which an editor offers beside it. `without_operator` takes its place where
    tracing would lose something behind an operator of torch's that it writes, and takes as much for granted.
    """

    message: str
    edits: tuple[Edit, ...]
    applicability: Applicability
    alternatives: tuple[Fix, ...] = ()
    without_operator: Fix | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no fix is offered: what could not be proved."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One hazard at one place of one document.

    `notes` are further sentences for people (which call reaches the place, why there is no fix); `fix` is None
    where there is none; `data` is what an export adds (torch's own words, a graph-break code, its link);
    `entry` the entry points that reach the place, as "path:Class".
    """

    code: str
    name: str
    severity: Severity
    message: str
    path: Path
    range: Range
    fix: Fix | None = None
    notes: tuple[str, ...] = ()
    url: str | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    entry: tuple[str, ...] = ()

    def with_fix(self, fix: Fix | Refusal | None) -> Finding:
        """The same finding with its fix, or with the reason why there is none among its notes."""
        if isinstance(fix, Refusal):
            return replace(self, fix=None, notes=(*self.notes, f"No fix offered: {fix.reason}"))
        return replace(self, fix=fix)

    def sort_key(self) -> tuple[str, Range, str]:
        return (str(self.path), self.range, self.code)
