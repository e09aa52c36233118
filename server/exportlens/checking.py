"""Checking many files: found by walking, one engine for each configuration, merged in one order."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import gc
import multiprocessing
import os
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exportlens.config import Config, load_config
from exportlens.engine import Engine
from exportlens.environment import site_packages
from exportlens.finding import Finding, Severity
from exportlens.fixing import applicable, apply_fixes
from exportlens.inference.scopes import Workspace
from exportlens.source.collector import collector_paused
from exportlens.source.document import Document
from exportlens.source.files import SourceFile, UnreadableSource, read_source
from exportlens.source.newer import newer_syntax_note
from exportlens.source.notebooks import NotebookFile, is_notebook
from exportlens.source.suppressions import Suppressions

_SUFFIXES = (".py", ".pyi", ".ipynb")
_ROUNDS = 100
# With less than this to read a second process costs more than it saves.
_BYTES_PER_PROCESS = 100_000
# Neighbours import the same files; yet each process is to take several parts, so that none is left with the long ones.
_MOST_FILES_PER_PART = 4
_PARTS_PER_PROCESS = 4


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be checked, or not wholly: why, and what to do."""

    path: Path
    message: str


@dataclass
class Checked:
    """What became of a check: findings in one order, problems, and the texts that fixes changed."""

    files: list[Path] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    fixed: list[Finding] = field(default_factory=list)
    changed: dict[Path, str] = field(default_factory=dict)
    sources: Sources = field(default_factory=lambda: Sources())


class Sources:
    """The texts of files: given ones first, else as read from disk; notebooks as the text of their code
    cells.
    """

    def __init__(self, given: Mapping[Path, str] | None = None) -> None:
        self.given = dict(given or {})
        self.files: dict[Path, SourceFile] = {}
        self.notebooks: dict[Path, NotebookFile] = {}

    def text(self, path: Path) -> str:
        """The text to check. Raises UnreadableSource."""
        if path in self.given:
            return self.given[path]
        if path not in self.files:
            self.files[path] = read_source(path)
        file = self.files[path]
        if is_notebook(path):
            if path not in self.notebooks:
                self.notebooks[path] = NotebookFile.read(file)
            return self.notebooks[path].notebook.text
        return file.text

    def readable(self, path: Path) -> str | None:
        """The text, or None where there is none to be had."""
        try:
            return self.text(path)
        except UnreadableSource:
            return None


def find_files(paths: Iterable[Path], overrides: Mapping[str, Any]) -> Iterator[Path]:
    """The files to check: those named, and the Python files and notebooks below named folders that are not
    excluded.
    """
    seen: set[Path] = set()
    for path in paths:
        for file in _walk(path, overrides) if path.is_dir() else [path]:
            absolute = Path(os.path.abspath(file))
            if absolute not in seen:
                seen.add(absolute)
                yield absolute


def _walk(folder: Path, overrides: Mapping[str, Any]) -> Iterator[Path]:
    config = load_config(folder, overrides)
    for current, folders, files in os.walk(folder):
        here = Path(current)
        folders[:] = sorted(name for name in folders if not config.excludes(here / name))
        for name in sorted(files):
            if name.endswith(_SUFFIXES) and not config.excludes(here / name):
                yield here / name


def check_files(
    files: Sequence[Path],
    overrides: Mapping[str, Any],
    *,
    given: Mapping[Path, str] | None = None,
    processes: int | None = None,
) -> Checked:
    """Check `files` (absolute paths); `given` holds texts that replace those on disk. Raises BadSetting.

    A finding in a helper is reported once, at the helper's place, with the entry points of all files that
    reach it.
    """
    result = Checked(files=list(files), sources=Sources(given))
    groups: dict[Path, tuple[Config, list[Path]]] = {}
    for file in files:
        folder = file.parent
        if folder not in groups:
            groups[folder] = (load_config(file, overrides), [])
        groups[folder][1].append(file)
    by_config: dict[str, tuple[Config, list[Path]]] = {}
    for config, members in groups.values():
        by_config.setdefault(config.fingerprint(), (config, []))[1].extend(members)
    wanted = min(processes or min(os.cpu_count() or 1, 8), len(files), _bytes(files) // _BYTES_PER_PROCESS)
    if wanted > 1 and not given and hasattr(os, "fork"):
        size = max(1, min(_MOST_FILES_PER_PART, len(files) // (wanted * _PARTS_PER_PROCESS)))
        parts = list(_parts(by_config.values(), size))
        with concurrent.futures.ProcessPoolExecutor(
            wanted, multiprocessing.get_context("fork"), initializer=gc.disable
        ) as pool:
            answers = list(pool.map(_check_part, *zip(*parts, strict=True)))
    else:
        answers = [_check_group(config, members, result.sources) for config, members in by_config.values()]
    for findings, problems in answers:
        result.findings += findings
        result.problems += problems
    result.findings = merged(result.findings)
    result.problems = sorted(set(result.problems), key=lambda problem: (str(problem.path), problem.message))
    return result


def _bytes(files: Iterable[Path]) -> int:
    """How much there is to read; files that are not there count for nothing."""
    total = 0
    for file in files:
        with contextlib.suppress(OSError):
            total += file.stat().st_size
    return total


def _parts(groups: Iterable[tuple[Config, list[Path]]], size: int) -> Iterator[tuple[Config, list[Path]]]:
    """Pieces of work of at most `size` files, neighbours together, that processes take one after the other."""
    for config, members in groups:
        for start in range(0, len(members), size):
            yield config, members[start : start + size]


_engines: dict[str, tuple[Engine, Sources]] = {}


def _check_part(config: Config, members: list[Path]) -> tuple[list[Finding], list[Problem]]:
    """What a process of the pool does with one piece; what it has read of imported files serves the next."""
    key = config.fingerprint()
    if key not in _engines:
        sources = Sources()
        _engines[key] = make_engine(config, sources), sources
    engine, sources = _engines[key]
    return _check_all(engine, members, sources)


def _check_group(
    config: Config, members: list[Path], sources: Sources
) -> tuple[list[Finding], list[Problem]]:
    return _check_all(make_engine(config, sources), members, sources)


def _check_all(engine: Engine, members: list[Path], sources: Sources) -> tuple[list[Finding], list[Problem]]:
    findings: list[Finding] = []
    problems: list[Problem] = []
    with collector_paused():
        for path in members:
            found, troubles = check_one(engine, path, sources)
            findings += found
            problems += troubles
    return findings, problems


# Where more files than these lie around a file, those that call it are not looked for.
_MOST_NEIGHBOURS = 500


def _neighbours(engine: Engine, path: Path) -> list[Path]:
    """The Python files below the folder from which `path` is imported, or those beside it where they are too many."""
    root = engine.workspace.package_root(path)[0]
    found: list[Path] = []
    for count, (current, folders, files) in enumerate(os.walk(root)):
        here = Path(current)
        folders[:] = sorted(name for name in folders if not engine.config.excludes(here / name))
        found += [here / name for name in sorted(files) if name.endswith(".py")]
        if len(found) > _MOST_NEIGHBOURS or count > _MOST_NEIGHBOURS:
            return sorted(path.parent.glob("*.py"))[:_MOST_NEIGHBOURS]
    return found


def make_engine(config: Config, sources: Sources, *roots: Path) -> Engine:
    """An engine whose workspace reads from `sources`, and that looks for callers on disk; `roots` are further folders
    that modules are imported from."""
    workspace = Workspace((config.root, *roots), site_packages(config.interpreter), sources.readable)
    engine = Engine(config, workspace)
    engine.neighbours = functools.cache(functools.partial(_neighbours, engine))
    return engine


def check_one(engine: Engine, path: Path, sources: Sources) -> tuple[list[Finding], list[Problem]]:
    """The findings that `path` leads to, suppressed and unselected ones left out, and what hindered checking
    it.
    """
    try:
        sources.text(path)
    except UnreadableSource as error:
        return [], [Problem(path, str(error))]
    try:
        document = engine.document(path)
        problems = [] if document is None else list(_syntax_problems(document))
        findings = engine.with_fixes(kept(engine.check(path), engine.config, sources))
        return findings, problems
    except Exception as error:
        return [], [Problem(path, internal_error(path, error))]


def internal_error(path: Path, error: Exception) -> str:
    """What to tell a user when ExportLens itself failed on a file."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}, line {frame.lineno}"
    words = str(error).partition("\n")[0]
    return (
        f"{path} could not be checked: ExportLens failed inside itself "
        f"({type(error).__name__}: {words}; {where}). "
        "Please report this with the file; the other files were checked"
    )


def kept(findings: Iterable[Finding], config: Config, sources: Sources) -> list[Finding]:
    """The findings that configuration and comments leave."""
    suppressions: dict[Path, Suppressions] = {}
    result = []
    for finding in findings:
        if not config.selects_finding(finding):
            continue
        if finding.path not in suppressions:
            suppressions[finding.path] = Suppressions.read(sources.readable(finding.path) or "")
        if not suppressions[finding.path].covers(finding):
            result.append(finding)
    return result


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each place and rule: the gravest, with all entry points for which it is as grave, in the order of files
    and lines.
    """
    gravity = list(Severity)
    by_place: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        key = finding.sort_key()
        known = by_place.get(key)
        if known is None:
            by_place[key] = finding
            continue
        first = min(known, finding, key=lambda each: gravity.index(each.severity))
        alike = [each for each in (known, finding) if each.severity is first.severity]
        by_place[key] = replace(first, entry=tuple(sorted({entry for each in alike for entry in each.entry})))
    return sorted(by_place.values(), key=Finding.sort_key)


def _syntax_problems(document: Document) -> Iterator[Problem]:
    """The first syntax error of a document; later ones may only follow from it."""
    for problem, position in document.problems():
        placed = document.chunk_at(position.line)
        newer = newer_syntax_note(placed.chunk.text) if placed else None
        reason = newer or f"{problem.message}. This statement was not checked"
        place = f"{document.path}:{position.line + 1}:{position.column + 1}"
        yield Problem(document.path, f"{place}: syntax error: {reason}")
        return


def fix_files(checked: Checked, overrides: Mapping[str, Any], *, unsafe: bool) -> None:
    """Apply fixes round by round until nothing changes; `checked` then holds the texts, what was fixed and
    what remains.

    Only files that were asked for are changed. A fix after which a file has more syntax errors is taken back
    and never tried again; and so are the fixes of remarks where errors remain that are not there without them:
    a counter in a buffer is of no use to a model whose branch on it has no rewrite. Then they are tried once more
    behind all others, which may have made a rewrite of that branch possible.
    """
    plain = Checked(checked.files, checked.findings, sources=checked.sources)
    _fix_in_rounds(checked, overrides, unsafe=unsafe)
    remarked = {each.path for each in checked.fixed if each.severity is Severity.INFORMATION}
    suspects = {path for path in remarked if _errors(checked, path)}
    if not suspects:
        return
    _fix_in_rounds(plain, overrides, unsafe=unsafe, only_graver_in=suspects)
    better = {path for path in suspects if _errors(plain, path) < _errors(checked, path)}
    if not better:
        return
    later = replace(plain, changed=dict(plain.changed), fixed=list(plain.fixed))
    _fix_in_rounds(later, overrides, unsafe=unsafe)
    for path in better:
        chosen = later if _errors(later, path) <= _errors(plain, path) else plain
        checked.changed.pop(path, None)
        if path in chosen.changed:
            checked.changed[path] = chosen.changed[path]
        checked.fixed = [each for each in checked.fixed if each.path != path]
        checked.fixed += [each for each in chosen.fixed if each.path == path]
    given = {**checked.sources.given, **checked.changed}
    checked.findings = check_files(checked.files, overrides, given=given, processes=1).findings


def _errors(checked: Checked, path: Path) -> int:
    return sum(each.path == path and each.severity is Severity.ERROR for each in checked.findings)


def _fix_in_rounds(
    checked: Checked,
    overrides: Mapping[str, Any],
    *,
    unsafe: bool,
    only_graver_in: Collection[Path] = (),
) -> None:
    """Apply fixes until nothing changes, but those of remarks in the files `only_graver_in`."""
    own = set(checked.files)
    bad: set[tuple[Path, str, str]] = set()
    for _ in range(_ROUNDS):
        by_path: dict[Path, list[Finding]] = {}
        for finding in checked.findings:
            if (
                finding.path in own
                and applicable(finding.fix, unsafe=unsafe)
                and _identity(finding) not in bad
                and not (finding.path in only_graver_in and finding.severity is Severity.INFORMATION)
            ):
                by_path.setdefault(finding.path, []).append(finding)
        changed = False
        for path, findings in by_path.items():
            changed |= _fix_file(checked, path, findings, bad)
        if not changed:
            return
        again = check_files(
            checked.files, overrides, given={**checked.sources.given, **checked.changed}, processes=1
        )
        checked.findings = again.findings


def _fix_file(checked: Checked, path: Path, findings: list[Finding], bad: set[tuple[Path, str, str]]) -> bool:
    text = checked.changed.get(path) or checked.sources.text(path)
    before = len(list(Document.parse(path, text).problems()))
    applied = apply_fixes(path, text, findings)
    if len(list(Document.parse(path, applied.text).problems())) > before:
        applied = _one_by_one(path, text, findings, before, bad)
    if applied.text == text:
        bad.update(_identity(finding) for finding in applied.findings)
        return False
    checked.changed[path] = applied.text
    checked.fixed += applied.findings
    return True


def _one_by_one(
    path: Path, text: str, findings: list[Finding], before: int, bad: set[tuple[Path, str, str]]
) -> Any:
    for finding in findings:
        applied = apply_fixes(path, text, [finding])
        if applied.findings and len(list(Document.parse(path, applied.text).problems())) <= before:
            return applied
        bad.add(_identity(finding))
    return apply_fixes(path, text, [])


def _identity(finding: Finding) -> tuple[Path, str, str]:
    return finding.path, finding.code, f"{finding.message}@{finding.range}"
