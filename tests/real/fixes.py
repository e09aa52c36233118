"""How many of the lines that torch blames get a fix, or a reason why there is none.

    python -m tests.real.fixes                   # the development packages
    python -m tests.real.fixes --research --list

One line that torch blames, in the modules of tests/real/data that do not export, counts once. Where `check` has an
error on its statement, that finding either has a fix, or says what could not be proved, or neither.

    python -m tests.real.fixes --research --verify

mends each module that does not export, and says how many then export and equal the original.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from exportlens.config import load_config
from exportlens.engine import Engine
from exportlens.finding import Finding, Severity
from exportlens.inference.scopes import Workspace

from tests.real.corpus import MODES, Row, Sources, by_package, read_rows
from tests.real.fixed import DIFFERS, verdicts
from tests.real.score import RESEARCH_ROOT, RESEARCH_ROWS, ROWS, SOURCES

FIXED, REFUSED, NEITHER = "fixed", "refused with reason", "neither"
_REASON = "No fix offered: "


@dataclass(frozen=True, slots=True)
class Answered:
    """A blamed line with an error on it, and what is offered there."""

    path: Path
    line: int
    text: str
    codes: tuple[str, ...]
    answer: str
    reasons: tuple[str, ...]


def answers(rows: list[Row], sources: Sources) -> list[Answered]:
    """Each distinct blamed line that carries an error, once."""
    done: list[Answered] = []
    for group in by_package(rows).values():
        for base in {base for row in group if (base := sources.base(row)) is not None}:
            blamed: dict[tuple[str, int], None] = {}
            for row in group:
                for mode in MODES:
                    measured = row.outcomes[mode]
                    if measured.status == "fail" and measured.file and measured.line:
                        blamed[measured.file, measured.line] = None
            here = [row for row in group if sources.base(row) == base]
            files = {base / row.file for row in here} | {base / file for file, _ in blamed}
            found = _findings(base, sorted(file for file in files if file.exists()))
            for file, line in blamed:
                answered = _answered(base, file, line, found.get(base / file, []), sources)
                if answered is not None:
                    done.append(answered)
    return done


def _findings(base: Path, files: Iterable[Path]) -> dict[Path, list[Finding]]:
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 4000))
    engine = Engine(load_config(base, {"mode": "both", "torch-version": "2.13"}), Workspace((base,)))
    by_file: dict[Path, dict[tuple[str, object], Finding]] = {}
    for file in files:
        for finding in engine.with_fixes(engine.check(file)):
            if finding.severity is Severity.ERROR:
                by_file.setdefault(finding.path, {})[finding.code, finding.range] = finding
    return {file: list(findings.values()) for file, findings in by_file.items()}


def _answered(base: Path, file: str, line: int, findings: list[Finding], sources: Sources) -> Answered | None:
    text = sources.text(base, file)
    first, last = text.statement(line) if text else (line, line)
    here = [
        finding
        for finding in findings
        if finding.range.start.line + 1 <= line <= finding.range.end.line + 1
        or first <= finding.range.start.line + 1 <= last
    ]
    if not here:
        return None
    reasons = tuple(
        note.removeprefix(_REASON) for finding in here for note in finding.notes if note.startswith(_REASON)
    )
    answer = FIXED if any(finding.fix for finding in here) else REFUSED if reasons else NEITHER
    codes = tuple(sorted({finding.code for finding in here}))
    return Answered(base / file, line, text.line(line).strip() if text else "", codes, answer, reasons)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--research", action="store_true", help="the collected research packages")
    parser.add_argument("--package", action="append", help="only this distribution (repeatable)")
    parser.add_argument("--verify", action="store_true", help="mend, run and export each failing module")
    parser.add_argument("--list", action="store_true", help="list each line")
    options = parser.parse_args()
    rows = read_rows(RESEARCH_ROWS if options.research else ROWS)
    rows = [row for row in rows if not options.package or row.distribution in options.package]
    sources = Sources((RESEARCH_ROOT if options.research else SOURCES).resolve())
    if options.verify:
        return _verify(rows, sources)
    done = answers(rows, sources)
    for answer, count in Counter(each.answer for each in done).most_common():
        print(f"{answer}: {count} of {len(done)} distinct blamed lines")
    for title, wanted in (("without either", NEITHER), ("refused", REFUSED), ("fixed", FIXED)):
        codes = Counter(code for each in done if each.answer == wanted for code in each.codes)
        print(f"\n{title}: " + ", ".join(f"{code} {count}" for code, count in codes.most_common()))
    if options.list:
        for each in sorted(done, key=lambda each: (each.answer, each.codes)):
            print(f"{each.answer} {','.join(each.codes)} {each.path}:{each.line}\n      {each.text}")
            for reason in each.reasons:
                print(f"      reason: {reason}")
    return 0


def _verify(rows: list[Row], sources: Sources) -> int:
    found = []
    for verdict in verdicts(rows, sources, sources.root.parent / "venv" / "bin" / "python"):
        found.append(verdict.outcome)
        print(f"{verdict.outcome}: {verdict.row.case} {verdict.words[:200]}", flush=True)
    for outcome, count in Counter(found).most_common():
        print(f"{outcome}: {count} of {len(found)} modules that do not export")
    return 1 if DIFFERS in found else 0


if __name__ == "__main__":
    sys.exit(main())
