"""Write docs/accuracy.md: the score tables, and what is missed or flagged wrongly.

    python -m tests.real.report          # scores everything again (minutes) and writes the page

The page is also the record that tests/real/test_score.py holds the engine to.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.real.baseline import check_by_pattern
from tests.real.corpus import MODES, Row, Sources, by_package, half, read_rows
from tests.real.score import (
    MEASURES,
    RESEARCH_ROOT,
    RESEARCH_ROWS,
    ROOT,
    ROWS,
    SOURCES,
    Check,
    Judged,
    Score,
    Share,
    check_by_command,
    concerned,
    kind,
    run,
    score,
    table,
)

PAGE = ROOT / "docs" / "accuracy.md"
TITLES = {name: title for title, name in MEASURES}
HEAD = """<!-- Written by `python -m tests.real.report`; do not edit. -->
# How accurate `exportlens check` is

Modules of published packages were really exported with torch 2.13 in both modes; `check` was then run on
their source, which nobody here wrote and no rule knows. Three figures matter: of the modules whose export
fails, how many carry an error on the very line that torch blames; how many anywhere in that function; and of
the modules that export soundly, how many carry an error all the same.

Each share counts modules; "distinct lines" counts each blamed line once, however many modules fail on it. An
error is on the line when its range holds that line, or when it starts in the same statement. Some models of
transformers were exported with `use_cache=False` and fail with their own settings (measured): `check` judges the
class as it is written, so those are counted apart from the sound ones. How the modules were measured:
[tests/real](../tests/real/README.md).
"""
SETS = {
    "packages": "Packages in wide use",
    "dev": "Research packages, development half",
    "held-out": "Research packages, held-out half",
}
NOTES = {
    "packages": """13 well-kept packages (transformers, timm, torchvision, kornia, monai, ...), constructed by
hand-made recipes.""",
    "dev": """Older and smaller packages, constructed with guessed arguments and inputs
(tests/real/construct.py). Rules may be improved on these.""",
    "held-out": """The other half, chosen by a hash of the package's name. Nobody looks at its lines: its
table shows whether the engine was fitted to the other two.""",
}


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    rows: list[Row]
    sources: Sources


def sections(skipped: Iterable[str] = ()) -> list[Section]:
    """The sets of modules that are installed here and have been measured, but for `skipped` distributions."""
    found = []
    if SOURCES.exists():
        rows = [row for row in read_rows(ROWS) if row.distribution not in skipped]
        found.append(Section("packages", rows, Sources(SOURCES)))
    if RESEARCH_ROOT.exists() and RESEARCH_ROWS.exists():
        rows = [row for row in read_rows(RESEARCH_ROWS) if row.distribution not in skipped]
        for name in ("dev", "held-out"):
            mine = [row for row in rows if half(row.distribution) == name]
            found.append(Section(name, mine, Sources(RESEARCH_ROOT)))
    return found


def page(
    check: Check = check_by_command, skipped: Iterable[str] = (), sets: Iterable[str] = tuple(SETS)
) -> tuple[str, list[str]]:
    """The whole page, and the problems met while scoring."""
    out = [HEAD]
    here = [section for section in sections(skipped) if section.name in sets]
    missing = set(sets) - {section.name for section in here}
    # A page without them would be a record that holds the engine to nothing.
    problems = [f"{name} is not installed: run scripts/install_real.py" for name in sorted(missing)]
    for section in [] if missing else here:
        judged, _, met = run(section.rows, section.sources, check, whole=False)
        problems += met
        plain, _, _ = run(section.rows, section.sources, check_by_pattern, whole=False)
        packages = len(by_package(section.rows))
        out.append(f"## {SETS[section.name]}\n\n{NOTES[section.name]}\n")
        out.append(f"{len(section.rows)} modules of {packages} packages.\n")
        out.append(table([score(judged, mode) for mode in MODES]) + "\n")
        out.append(package_table(judged) + "\n")
        out.append("For scale, a matcher of suspicious patterns on the same modules:\n")
        out.append(plain_table([score(plain, mode) for mode in MODES]) + "\n")
        if section.name != "held-out":
            out += [leftovers(judged, section.sources, mode) for mode in MODES]
    return "\n".join(out), problems


def plain_table(scores: list[Score]) -> str:
    lines = table(scores).splitlines()
    wanted = (TITLES["line"], TITLES["function"], TITLES["alarms_in_class"])
    return "\n".join(
        lines[:2] + [line for line in lines if line.startswith(tuple(f"| {title}" for title in wanted))]
    )


def leftovers(judged: list[Judged], sources: Sources, mode: str) -> str:
    """The misses and false alarms of one mode, one row each."""
    missed: dict[tuple[str, int], list[Judged]] = {}
    alarms: dict[tuple[str, int, str], list[Judged]] = {}
    for item in judged:
        if item.mode != mode:
            continue
        if item.is_located and not item.on_line:
            missed.setdefault((item.measured.file or "", item.measured.line or 0), []).append(item)
        if item.is_sound:
            for error in concerned(item):
                alarms.setdefault((error.file, error.line, error.code), []).append(item)
    out = [f"### {mode}: {len(missed)} lines missed, {len(alarms)} lines flagged wrongly\n"]
    if missed:
        out += ["| missed line | modules | kind | source |", "|---|---:|---|---|"]
    for (file, line), items in sorted(missed.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        text = sources.text(items[0].base, file)
        what = cell(text.line(line)) if text else ""
        out.append(f"| {file}:{line} | {len(items)} | {kind(text, items[0].measured)} | `{what}` |")
    if alarms:
        out += ["", "| flagged, yet it exports | modules | code | source |", "|---|---:|---|---|"]
    for (file, line, code), items in sorted(alarms.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        text = sources.text(items[0].base, file)
        what = cell(text.line(line)) if text else ""
        out.append(f"| {file}:{line} | {len(items)} | {code} | `{what}` |")
    return "\n".join(out) + "\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")[:90]


PACKAGE_MEASURES = ("line", "function", "alarms_in_class", "alarms_from_entry")


def package_table(judged: list[Judged]) -> str:
    """The figures of each package, the two modes beside each other: what the tests compare with."""
    titles = [
        f"{mode}: {word}" for mode in MODES for word in ("line", "function", "alarms", "alarms as entry")
    ]
    out = ["| package | " + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    for name in sorted({item.row.distribution for item in judged}):
        mine = [item for item in judged if item.row.distribution == name]
        scores = [score(mine, mode) for mode in MODES]
        shares = [getattr(one, measure) for one in scores for measure in PACKAGE_MEASURES]
        cells = [f"{share.part}/{share.whole}" if share and share.whole else "-" for share in shares]
        out.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(out)


def recorded(text: str) -> dict[tuple[str, str, str], Share]:
    """The figures of a page's tables by package: (distribution, measure, mode) -> share."""
    keys = [(measure, mode) for mode in MODES for measure in PACKAGE_MEASURES]
    figures: dict[tuple[str, str, str], Share] = {}
    for part in text.split("| package |")[1:]:
        for line in part.splitlines()[2:]:
            cells = [item.strip() for item in line.strip("|").split("|")]
            if len(cells) != len(keys) + 1:
                break
            for (measure, mode), value in zip(keys, cells[1:], strict=True):
                share = re.fullmatch(r"(\d+)/(\d+)", value)
                if share:
                    figures[cells[0], measure, mode] = Share(int(share[1]), int(share[2]))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--skip", action="append", default=[], help="leave this distribution out")
    parser.add_argument("--set", action="append", choices=list(SETS), help="only these modules")
    parser.add_argument("--in-process", action="store_true", help="run the engine in this process")
    options = parser.parse_args()
    check: Check = check_by_command
    if options.in_process:
        from tests.real.in_process import check_in_process

        check = check_in_process
    text, problems = page(check, options.skip, options.set or tuple(SETS))
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print("the page was not written: mend these first", file=sys.stderr)
        return 2
    options.output.write_text(text)
    print(f"written: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
