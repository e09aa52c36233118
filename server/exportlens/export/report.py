"""What one confirmation found, as data: for JSON, text, the HTML page and the editor."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exportlens.finding import Finding

KINDS = (
    "import",
    "construct",
    "inputs",
    "eager",
    "export",
    "lower",
    "run",
    "mismatch",
    "timeout",
    "memory",
    "crash",
    "cancelled",
    "unavailable",
)
COULD_NOT_RUN = ("import", "construct", "inputs", "unavailable", "cancelled")
"""Failures that say nothing about the model's export: exit code 2."""


@dataclass(frozen=True)
class Failure:
    """Why a stage failed: `kind` is one of KINDS, `message` what is wrong and what to do."""

    stage: str
    kind: str
    message: str

    def to_json(self) -> dict[str, Any]:
        return {"stage": self.stage, "kind": self.kind, "message": self.message}


@dataclass
class TargetReport:
    """One target: `status` is ok, failed, unavailable or skipped (there was no program to lower)."""

    name: str
    status: str = "skipped"
    stage: str | None = None
    seconds: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    artifact: Path | None = None
    bytes: int | None = None
    comparison: dict[str, Any] | None = None
    latency: dict[str, Any] | None = None
    delegated: int | None = None
    left: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    peak_memory: int | None = None
    failure: Failure | None = None

    def to_json(self) -> dict[str, Any]:
        comparison = self.comparison or {}
        return {
            "name": self.name,
            "status": self.status,
            "stage": self.stage,
            "seconds": self.seconds,
            "stages": self.stages,
            "artifact": str(self.artifact) if self.artifact else None,
            "bytes": self.bytes,
            "max_abs_error": comparison.get("max_abs_error"),
            "max_rel_error": comparison.get("max_rel_error"),
            "latency": self.latency,
            "delegated": self.delegated,
            "left": self.left,
            "notes": self.notes,
            "peak_memory": self.peak_memory,
            "comparison": self.comparison,
            "failure": self.failure.to_json() if self.failure else None,
        }


@dataclass
class ModeReport:
    """One mode's export and its comparison with eager."""

    mode: str
    ok: bool = False
    seconds: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    comparison: dict[str, Any] | None = None
    histogram: dict[str, int] = field(default_factory=dict)
    dynamic_dims: list[dict[str, Any]] = field(default_factory=list)
    graph: dict[str, Any] | None = None
    peak_memory: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "ok": self.ok,
            "seconds": self.seconds,
            "stages": self.stages,
            "failure": self.failure.to_json() if self.failure else None,
            "comparison": self.comparison,
            "histogram": self.histogram,
            "dynamic_dims": self.dynamic_dims,
            "peak_memory": self.peak_memory,
        }


@dataclass
class Report:
    """The whole confirmation. `ok` is false when anything asked for failed or differs from eager."""

    model: str
    torch: str | None = None
    python: str | None = None
    interpreter: str | None = None
    mode: str | None = None
    modes: list[ModeReport] = field(default_factory=list)
    targets: list[TargetReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    failure: Failure | None = None
    chosen: dict[str, Any] | None = None
    draft: list[dict[str, Any]] = field(default_factory=list)
    seconds: float | None = None
    log: str = ""
    unavailable_is_failure: bool = True

    @property
    def ok(self) -> bool:
        if self.failure is not None or not self.modes or not all(mode.ok for mode in self.modes):
            return False
        bad = ("failed", "skipped", "unavailable") if self.unavailable_is_failure else ("failed", "skipped")
        return not any(target.status in bad for target in self.targets)

    @property
    def comparison(self) -> dict[str, Any] | None:
        """The comparison of the mode that the targets were lowered from."""
        return next((mode.comparison for mode in self.modes if mode.comparison), None)

    @property
    def graph(self) -> dict[str, Any] | None:
        return next((mode.graph for mode in self.modes if mode.graph), None)

    @property
    def exit_code(self) -> int:
        """0 confirmed, 1 failed or different, 2 could not be run at all."""
        if self.ok:
            return 0
        return 2 if self.failure is not None and self.failure.kind in COULD_NOT_RUN else 1

    def to_json(self) -> dict[str, Any]:
        from exportlens.interchange import finding_json

        return {
            "model": self.model,
            "torch": self.torch,
            "python": self.python,
            "interpreter": self.interpreter,
            "mode": self.mode,
            "ok": self.ok,
            "failure": self.failure.to_json() if self.failure else None,
            "findings": [finding_json(finding) for finding in self.findings],
            "comparison": self.comparison,
            "modes": [mode.to_json() for mode in self.modes],
            "targets": [target.to_json() for target in self.targets],
            "chosen": self.chosen,
            "draft": self.draft,
            "seconds": self.seconds,
        }
