"""What real runs said of the findings in the text as it is now: exports, and fixes that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from exportlens.counterpart import Place, Verdict, place_of
from exportlens.finding import Finding


@dataclass(frozen=True, slots=True)
class Trial:
    """How a fix did in the worker: a fix that failed is withdrawn until the text changes."""

    verified: bool
    reason: str


@dataclass
class Evidence:
    """What exports found (by model), what they say of static findings, and which fixes were tried."""

    exported: dict[str, list[Finding]] = field(default_factory=dict)
    verdicts: dict[str, dict[Place, Verdict]] = field(default_factory=dict)
    trials: dict[Place, Trial] = field(default_factory=dict)

    def forget(self, path: Path) -> None:
        """The text of `path` changed: what was said of its lines, and of models that it defines, no longer holds."""
        for findings in self.exported.values():
            findings[:] = [finding for finding in findings if finding.path != path]
        for model, said in self.verdicts.items():
            kept = {} if model.startswith(f"{path}:") else {p: v for p, v in said.items() if p[1] != path}
            self.verdicts[model] = kept
        self.trials = {place: trial for place, trial in self.trials.items() if place[1] != path}

    def take(self, model: str, findings: list[Finding], said: Mapping[Place, Verdict]) -> set[Path]:
        """Take what an export of `model` found and said; returns the paths whose findings look different now."""
        before, old = self.exported.get(model, []), self.verdicts.get(model, {})
        self.exported[model], self.verdicts[model] = list(findings), dict(said)
        places = {place for place in {**old, **said} if old.get(place) != said.get(place)}
        return {finding.path for finding in [*before, *findings]} | {place[1] for place in places}

    def found_in(self, path: Path) -> list[Finding]:
        """What exports found in `path`, without the fixes of rules that were tried and failed."""
        found = [f for findings in self.exported.values() for f in findings if f.path == path]
        return [replace(f, fix=None) if f.fix is not None and self._failed(f) else f for f in found]

    def _failed(self, finding: Finding) -> bool:
        """Whether the fix, which is that of the rule behind an export's finding, was tried and failed."""
        return any(
            (code, path) == (finding.data.get("rule"), finding.path) and not trial.verified
            for (code, path, _), trial in self.trials.items()
        )

    def applied_to(self, finding: Finding) -> Finding:
        """The finding with what was learnt about it among its notes, and without a fix that failed."""
        place = place_of(finding)
        notes = list(finding.notes)
        data = dict(finding.data)
        for said in self.verdicts.values():
            if verdict := said.get(place):
                notes.append(f"{verdict.word.value.capitalize()}: {verdict.grounds}.")
                data["confirmation"] = verdict.word.value
        trial = self.trials.get(place)
        if trial is not None and finding.fix is not None:
            if trial.verified:
                notes.append(f"Fix verified: {trial.reason}.")
                data["fix"] = "verified"
            else:
                notes.append(f"Fix withdrawn: {trial.reason}.")
                data["fix"] = "withdrawn"
                finding = replace(finding, fix=None)
        return replace(finding, notes=tuple(notes), data=data) if data != finding.data else finding
