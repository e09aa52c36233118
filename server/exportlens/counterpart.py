"""The static counterpart of a confirmation: what a real export says of the findings that were made without it."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from exportlens.finding import Finding, Range, Severity
from exportlens.graph_breaks import rules_of
from exportlens.outcome import BAKED, FAILS, WRONG, Mode, TorchVersion
from exportlens.rule import registry

if TYPE_CHECKING:
    from exportlens.export.report import Report
    from exportlens.rewriting.exporting.runtime_causes import RuntimeCause

Place = tuple[str, Path, Range]
"""Which finding: its code, its file, and its range there."""


class Word(enum.Enum):
    """What one real export says of one static finding."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted here"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word and the sentence that gives its grounds."""

    word: Word
    grounds: str


def place_of(finding: Finding) -> Place:
    """What tells a finding from the others of the same text."""
    return (finding.code, finding.path, finding.range)


def verdicts(findings: Iterable[Finding], report: Report) -> dict[Place, Verdict]:
    """What `report` says of those static findings that its model reaches.

    Confirmed is one on a line that the export blames. Refuted, for the inputs that were tried, is one whose rule
    expects a failure or wrong numbers in a mode that was run, when every such mode exported and equalled eager. Of all
    others (an export that stopped elsewhere may never have come to them) nothing is said.
    """
    blamed = [f for f in report.findings if f.severity is Severity.ERROR]
    expected = {rule.code: rule.outcome for rule in registry()}
    ran = {Mode(mode.mode): mode.ok for mode in report.modes}
    found: dict[Place, Verdict] = {}
    for finding in findings:
        outcome = expected.get(finding.code)
        if outcome is None or not _reached(finding, report.model):
            continue
        name = report.model.rpartition(":")[2]
        evidence = next((each for each in blamed if _same_lines(each, finding)), None)
        if evidence is not None:
            grounds = f"a real export of {name} stops here, too ({evidence.code})"
            if evidence.data.get("target"):
                grounds = f"{evidence.data['target']} refuses {name} here, too ({evidence.code})"
            found[place_of(finding)] = Verdict(Word.CONFIRMED, grounds)
            continue
        version = TorchVersion.parse(report.torch) if report.torch else None
        judged = [
            mode for mode in ran if version is not None and outcome.result(version, mode) in (FAILS, WRONG)
        ]
        if judged and all(ran[mode] for mode in judged):
            modes = " and ".join(mode.value for mode in judged)
            grounds = f"{name} exports in {modes} mode and equals eager on every input that was tried"
            found[place_of(finding)] = Verdict(Word.REFUTED, grounds)
    return found


def with_fixes(
    findings: Iterable[Finding], report: Report, shown: Callable[[Finding], list[RuntimeCause]]
) -> list[Finding]:
    """The report's findings; a failure whose cause a rule knows carries the rule's code and its fix, or why it has
    none. One that no rule found in the text carries what torch's words lead to, or names the rules that know torch's
    kind of graph break.

    `findings` are those of the rules in the files that the report blames, with their fixes; `shown` tells what only an
    export shows of a failure.
    """
    known = [each for each in findings if _reached(each, report.model)]
    return [
        _with_fix(finding, _causes(finding, known, report), shown)
        if finding.severity is Severity.ERROR
        else finding
        for finding in report.findings
    ]


def _causes(failure: Finding, known: list[Finding], report: Report) -> list[Finding]:
    """What the rules say of the failure's line, those with a fix first.

    Wrong numbers show where they are first used, which may be after the line that made them so, and some failures of
    torch have no line at all: where none stands there, the only one that the model has of that kind is taken.
    """
    here = [each for each in known if _same_lines(each, failure)]
    results = (WRONG, BAKED) if failure.code in _WRONG_NUMBERS else (FAILS, WRONG)
    if not here and report.torch and (failure.code in _WRONG_NUMBERS or failure.data.get("whole")):
        version = TorchVersion.parse(report.torch)
        outcomes = {rule.code: rule.outcome for rule in registry()}
        modes = [Mode(mode.mode) for mode in report.modes]
        alike = [
            each
            for each in known
            if each.entry  # one of an export call is none of the model's
            and each.code in outcomes
            and any(outcomes[each.code].result(version, mode) in results for mode in modes)
        ]
        here = alike if len(alike) == 1 else []
    return sorted(here, key=lambda each: (each.fix is None, each.severity is not Severity.ERROR))


_WRONG_NUMBERS = ("EXP003", "EXP004", "EXP006")


def _with_fix(
    failure: Finding, causes: list[Finding], shown: Callable[[Finding], list[RuntimeCause]]
) -> Finding:
    if failure.fix is not None:
        return failure
    if not causes or causes[0].fix is None:
        runtime = next(iter(shown(failure)), None)
        if runtime is not None:
            names = {rule.code: rule.name for rule in registry()}
            note = f"Fix by {runtime.code} ({names.get(runtime.code, runtime.code)}): {runtime.fix.message}"
            data = {**failure.data, "rule": runtime.code}
            return replace(failure, fix=runtime.fix, notes=(*failure.notes, note), data=data)
    if not causes:
        return _with_rules(failure)
    rule = causes[0]
    where = f" in line {rule.range.start.line + 1}" if not _same_lines(rule, failure) else ""
    if rule.fix is not None:
        notes = [f"Fix by {rule.code} ({rule.name}){where}: {rule.fix.message}"]
    else:
        refused = [note for note in rule.notes if note.startswith("No fix offered")]
        notes = [f"{rule.code} ({rule.name}){where}: {rule.message}", *refused]
    data = {**failure.data, "rule": rule.code}
    return replace(failure, fix=rule.fix, notes=(*failure.notes, *notes), data=data)


def _with_rules(failure: Finding) -> Finding:
    """The failure with the rules that know torch's kind of graph break; as it is where none does."""
    gb = str(failure.data.get("gb", ""))
    known = {rule.code: rule for rule in registry()}
    rules = [known[code] for code in rules_of(gb) if code in known]
    if not rules:
        return failure
    named = ", ".join(f"{rule.code} ({rule.name})" for rule in rules[:_MOST_RULES])
    named += f" and {len(rules) - _MOST_RULES} more" if len(rules) > _MOST_RULES else ""
    note = (
        f"Rules on this kind of failure ({gb}): {named}. `exportlens rule {rules[0].code}` tells what to do."
    )
    data = {**failure.data, "rule": rules[0].code} if len(rules) == 1 else failure.data
    return replace(failure, notes=(*failure.notes, note), data=data)


_MOST_RULES = 4


def cause(findings: Iterable[Finding], report: Report) -> Finding | None:
    """The static finding that explains, in words for people, why the export of `report` failed."""
    if report.failure is None and all(target.failure is None for target in report.targets):
        return None
    confirmed: Mapping[Place, Verdict] = verdicts(findings, report)
    for finding in sorted(findings, key=lambda each: (each.severity is not Severity.ERROR, each.sort_key())):
        verdict = confirmed.get(place_of(finding))
        if verdict is not None and verdict.word is Word.CONFIRMED:
            return finding
    return None


def _reached(finding: Finding, model: str) -> bool:
    """Whether the finding's entry points include the model; where a finding names none, its own file decides."""
    place, _, name = model.rpartition(":")
    place = os.path.abspath(place) if place.endswith(".py") else place
    if not finding.entry:
        return str(finding.path) == place
    return any(entry in (f"{place}:{name}", f"{place}:{name}.forward") for entry in finding.entry)


def _same_lines(one: Finding, other: Finding) -> bool:
    return (
        one.path == other.path
        and one.range.start.line <= other.range.end.line
        and other.range.start.line <= one.range.end.line
    )
