"""`exportlens check`: find what stops torch.export, and mend it."""

from __future__ import annotations

import difflib
import gc
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exportlens.cli import OWN_PROCESS
from exportlens.cli.words import separated

if TYPE_CHECKING:
    from exportlens.checking import Checked
    from exportlens.finding import Finding
    from exportlens.verification import Trial

_DEFAULT_STDIN = "stdin.py"


@click.command(
    epilog="""\b
Examples:
  exportlens check                             everything below this folder
  exportlens check model.py --mode both        what fails in strict or in non-strict mode
  exportlens check . --select EXL1,EXL201      some rules only (codes, prefixes or names)
  exportlens check . --fix --unsafe-fixes      mend all that can be mended
  exportlens check . --diff --unsafe-fixes     show what would be mended
  exportlens check m.py --fix --unsafe-fixes --verify    keep only what exports and equals the original
  exportlens check . --output-format json      for other tools, in ruff's fields
  exportlens check --explain model.py:42       what is believed of each value on a line
  exportlens check --explain utils.py:7 src    ... where the models of other files reach it
  cat model.py | exportlens check - --stdin-filename src/model.py

A comment `# exportlens: ignore[EXL101]` or `# noqa: EXL101` on the line silences a finding,
`# exportlens: ignore-file` a whole file.

Exit codes: 0 nothing found, 1 errors or warnings found, 2 something could not be checked.
"""
)
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--select", multiple=True, metavar="RULES", help="Only these codes, prefixes or names (comma-separated)."
)
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these codes, prefixes or names.")
@click.option(
    "--exclude", multiple=True, metavar="PATTERNS", help="Names or paths not to walk into, beside the usual."
)
@click.option(
    "--torch-version",
    metavar="X.Y|auto",
    help="Which torch the code is for. [default: auto, the installed one]",
)
@click.option(
    "--mode", metavar="MODE", help="strict, non-strict, both or auto. [default: auto, as that torch traces]"
)
@click.option(
    "--training",
    is_flag=True,
    help="Judge models as they are in training. [default: training of [tool.exportlens], else after eval()]",
)
@click.option(
    "--target",
    multiple=True,
    metavar="NAMES",
    help="Also what these hardware targets do not take. [default: target of [tool.exportlens]]",
)
@click.option("--interpreter", metavar="PYTHON", help="The interpreter whose packages the code uses.")
@click.option("--fix", is_flag=True, help="Apply safe fixes.")
@click.option("--unsafe-fixes", is_flag=True, help="Take unsafe fixes, too.")
@click.option("--diff", is_flag=True, help="Show what the fixes would change; write nothing.")
@click.option(
    "--verify",
    is_flag=True,
    help="With --fix or --diff: run the models (this runs your code), and withdraw each fix that changes what a "
    "model computes or that its export refuses.",
)
@click.option(
    "--explain",
    metavar="FILE:LINE",
    help="Print what is believed of the values on a line, when the models of its file and of PATHS reach it.",
)
@click.option("--statistics", is_flag=True, help="Print how often each rule found something.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when something was found.")
@click.option("--stdin-filename", metavar="PATH", help="The name of what is read from standard input.")
@click.option("--quiet", "-q", is_flag=True, help="No summary.")
def command(
    paths: tuple[str, ...],
    output_format: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    torch_version: str | None,
    mode: str | None,
    training: bool,
    target: tuple[str, ...],
    interpreter: str | None,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    verify: bool,
    explain: str | None,
    statistics: bool,
    exit_zero: bool,
    stdin_filename: str | None,
    quiet: bool,
) -> None:
    """Find what stops torch.export in PATHS (files or folders), and mend it."""
    from exportlens.checking import check_files, find_files, fix_files
    from exportlens.config import BadSetting
    from exportlens.rule import DuplicateCode

    overrides: dict[str, Any] = {
        "select": separated(select) or None,
        "ignore": separated(ignore) or None,
        "extend-exclude": separated(exclude) or None,
        "torch-version": torch_version,
        "mode": mode,
        "training": training or None,
        "target": separated(target) or None,
        "interpreter": None if interpreter is None else str(Path(interpreter).absolute()),
    }
    trials: list[Trial] = []
    try:
        if verify and not (fix or diff):
            raise BadSetting("--verify tries fixes: give --fix or --diff beside it")
        _check_selectors(overrides)
        _check_targets(overrides["target"])
        if explain is not None:
            sys.exit(_explain(explain, paths, overrides))
        given = _standard_input(paths, stdin_filename)
        files = list(given) or list(find_files(_existing(paths), overrides))
        if not files:
            click.echo("warning: no Python files found there", err=True)
        if click.get_current_context().obj == OWN_PROCESS and not (fix or diff):
            # Only the output follows: the collection that is due by then would visit all that was read for nothing.
            gc.disable()
        checked = check_files(files, overrides, given=given)
        before = {path: checked.sources.readable(path) or "" for path in {f.path for f in checked.findings}}
        if fix or diff:
            if verify:
                trials = _verified(checked, overrides, unsafe_fixes)
            else:
                fix_files(checked, overrides, unsafe=unsafe_fixes)
    except (BadSetting, DuplicateCode) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except RecursionError:
        click.echo(
            "error: the code is nested too deeply to be checked; run it file by file to find out which",
            err=True,
        )
        sys.exit(2)
    if diff:
        _tell_trials(trials, checked, err=True)
        _show_diff(checked, before)
    else:
        aside = fix and bool(given)
        if fix:
            _write(checked, given, to_stdout=bool(given))
        if output_format == "json":
            _show_json(checked, trials, err=aside)
        else:
            _tell_trials(trials, checked, err=aside)
            _show(_without_withdrawn(checked, trials), statistics, quiet, unsafe_fixes, overrides, err=aside)
    for problem in checked.problems:
        click.echo(f"{click.style('error', fg='red', bold=True)}: {problem.message}", err=True)
    sys.exit(_exit_code(checked, diff=diff, exit_zero=exit_zero))


def _verified(checked: Checked, overrides: dict[str, Any], unsafe: bool) -> list[Trial]:
    from exportlens.config import BadSetting
    from exportlens.export.worker_process import WorkerUnusable
    from exportlens.verification import fix_and_verify

    try:
        return fix_and_verify(checked, overrides, unsafe=unsafe)
    except WorkerUnusable as error:
        raise BadSetting(f"--verify: {error}") from error


def _tell_trials(trials: list[Trial], checked: Checked, *, err: bool) -> None:
    """One line for each fix that was tried."""
    from exportlens.cli.frames import place_of

    colours = {True: "green", False: "red", None: "yellow"}
    for trial in sorted(trials, key=lambda each: each.finding.sort_key()):
        word, _, rest = trial.line.partition(":")
        told = click.style(word, fg=colours[trial.verified], bold=True)
        click.echo(
            f"{place_of(trial.finding, checked.sources)}: {trial.finding.code} fix {told}:{rest}", err=err
        )
    if trials:
        click.echo(err=err)


def _without_withdrawn(checked: Checked, trials: list[Trial]) -> Checked:
    """The same with no fix on a finding whose fix was withdrawn, and a note of why."""
    from exportlens.counterpart import place_of

    reasons = {place_of(trial.finding): trial.reason for trial in trials if trial.verified is False}
    findings = [
        replace(finding, fix=None, notes=(*finding.notes, f"Fix withdrawn: {reasons[place_of(finding)]}"))
        if place_of(finding) in reasons
        else finding
        for finding in checked.findings
    ]
    return replace(checked, findings=findings)


def _check_targets(names: list[str] | None) -> None:
    if names:
        from exportlens.config import BadSetting
        from exportlens.export.registry import choose

        try:
            choose(tuple(names))
        except ValueError as error:
            raise BadSetting(f"--target: {error}") from error


def _check_selectors(overrides: dict[str, Any]) -> None:
    from exportlens.config import BadSetting
    from exportlens.rule import registry
    from exportlens.source.suppressions import names

    for key in ("select", "ignore"):
        for selector in overrides[key] or ():
            if not any(names(selector, rule.code, rule.name) for rule in registry()):
                known = [word for rule in registry() for word in (rule.code, rule.name)]
                close = difflib.get_close_matches(selector, known, 1)
                hint = f"did you mean {close[0]}?" if close else "`exportlens rule --all` lists them"
                raise BadSetting(f"--{key}: no rule is called {selector!r}; {hint}")


def _existing(paths: tuple[str, ...]) -> list[Path]:
    from exportlens.config import BadSetting

    for path in paths:
        if not Path(path).exists():
            raise BadSetting(f"{path} does not exist; give files or folders to check")
    return [Path(path) for path in paths] or [Path()]


def _standard_input(paths: tuple[str, ...], name: str | None) -> dict[Path, str]:
    from exportlens.config import BadSetting
    from exportlens.source.files import UnreadableSource, decode_source

    if "-" not in paths:
        return {}
    if len(paths) > 1:
        raise BadSetting("`-` reads the code from standard input; give no other paths beside it")
    path = Path(name or _DEFAULT_STDIN).absolute()
    try:
        return {path: decode_source(path, sys.stdin.buffer.read()).text}
    except UnreadableSource as error:
        raise BadSetting(str(error)) from error


def _explain(place: str, paths: tuple[str, ...], overrides: dict[str, Any]) -> int:
    from exportlens.checking import Sources, find_files, make_engine
    from exportlens.config import BadSetting, load_config
    from exportlens.source.files import UnreadableSource

    name, _, line = place.rpartition(":")
    if not name or not line.isdigit() or int(line) < 1:
        raise BadSetting(f"--explain: {place!r} is no FILE:LINE; write model.py:42")
    path = Path(name).absolute()
    sources = Sources()
    try:
        text = sources.text(path)
    except UnreadableSource as error:
        raise BadSetting(str(error)) from error
    if int(line) > len(text.splitlines()):
        raise BadSetting(f"--explain: {name} has {len(text.splitlines())} lines, there is no line {line}")
    engine = make_engine(load_config(path, overrides), sources)
    entries = [file.absolute() for file in find_files(_existing(paths), overrides)] if paths else []
    beliefs = engine.explain(path, int(line) - 1, entries)
    click.echo(text.splitlines()[int(line) - 1])
    for belief in beliefs:
        click.echo(f"  {belief}")
    if not beliefs:
        click.echo("  nothing: no entry point reaches this line, or it holds no expression")
    return 0


def _show_diff(checked: Checked, before: dict[Path, str]) -> None:
    from exportlens.cli.frames import shown_path

    for path in sorted(checked.changed):
        old = before.get(path, "").splitlines(keepends=True)
        new = checked.changed[path].splitlines(keepends=True)
        for line in difflib.unified_diff(old, new, shown_path(path), shown_path(path)):
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[0])
            ended = line if line.endswith(("\n", "\r")) else line + "\n\\ No newline at end of file\n"
            click.echo(click.style(ended, fg=colour), nl=False)
    fixes = "1 fix" if len(checked.fixed) == 1 else f"{len(checked.fixed)} fixes"
    what = f"{fixes} in {_count(len(checked.changed), 'file')}"
    click.echo(f"Would apply {what}." if checked.changed else "No fixes to apply.", err=True)


def _write(checked: Checked, given: dict[Path, str], *, to_stdout: bool) -> None:
    from exportlens.checking import Problem
    from exportlens.source.files import UnreadableSource, write_source

    if to_stdout:
        for path, text in given.items():
            click.echo(checked.changed.get(path, text), nl=False)
        return
    for path in sorted(checked.changed):
        notebook = checked.sources.notebooks.get(path)
        text = checked.changed[path]
        try:
            write_source(checked.sources.files[path], notebook.with_document(text) if notebook else text)
        except UnreadableSource as error:
            checked.problems.append(Problem(path, str(error)))


def _show_json(checked: Checked, trials: list[Trial], *, err: bool) -> None:
    """What is left; and, of fixes that were tried, what became of them: applied ones stand behind the rest."""
    from exportlens.counterpart import place_of

    withdrawn = {place_of(trial.finding): trial for trial in trials if trial.verified is False}
    rows = []
    for finding in checked.findings:
        row = _as_json(finding, checked)
        trial = withdrawn.get(place_of(finding))
        if trial is not None and row["fix"] is not None:
            row["fix"] |= {**trial.to_json(), "applied": False}
        rows.append(row)
    for trial in trials:
        if trial.verified is not False:
            row = _as_json(trial.finding, checked)
            row["fix"] |= {**trial.to_json(), "applied": True}
            rows.append(row)
    click.echo(json.dumps(rows, indent=2), err=err)


def _show(
    checked: Checked,
    statistics: bool,
    quiet: bool,
    unsafe: bool,
    overrides: dict[str, Any],
    *,
    err: bool = False,
) -> None:
    from exportlens.checking import Sources
    from exportlens.cli.frames import render_findings

    # Frames show the text as it is now, after fixes.
    sources = Sources({**checked.sources.given, **checked.changed})
    sources.files, sources.notebooks = checked.sources.files, checked.sources.notebooks
    if statistics:
        counted = Counter((finding.code, finding.name) for finding in checked.findings)
        for (code, name), count in sorted(counted.items(), key=lambda each: (-each[1], each[0])):
            click.echo(f"{count:>6}  {code}  {name}", err=err)
    else:
        for block in render_findings(checked.findings, sources):
            click.echo(block, err=err)
    if not quiet:
        click.echo(_summary(checked, unsafe, overrides), err=err)


def _as_json(finding: Finding, checked: Checked) -> dict[str, Any]:
    from exportlens.interchange import finding_json, location_json

    fields = finding_json(finding)
    notebook = checked.sources.notebooks.get(finding.path)
    if notebook is not None and notebook.notebook.cells:
        cell, place = notebook.notebook.locate_range(finding.range)
        fields |= {
            "cell": cell.index + 1,
            "location": location_json(place.start),
            "end_location": location_json(place.end),
        }
    return fields


def _summary(checked: Checked, unsafe: bool, overrides: dict[str, Any]) -> str:
    from exportlens.config import load_config
    from exportlens.finding import Severity
    from exportlens.fixing import applicable

    config = load_config(checked.files[0] if checked.files else Path(), overrides)
    modes = " and ".join(mode.value for mode in config.modes)
    scope = f"{_count(len(checked.files), 'file')} for torch {config.torch_version}, {modes} mode"
    parts = []
    if checked.fixed:
        parts.append(
            f"Fixed {_count(len(checked.fixed), 'finding')} in {_count(len(checked.changed), 'file')}."
        )
    counts = Counter(finding.severity for finding in checked.findings)
    if not checked.findings:
        parts.append(f"Nothing found in {scope}.")
        return " ".join(parts)
    words = ", ".join(
        _count(counts[severity], _WORDS[severity.value]) for severity in Severity if counts[severity]
    )
    parts.append(f"Found {words} in {scope}.")
    safe = sum(applicable(finding.fix, unsafe=False) for finding in checked.findings)
    all_ = sum(applicable(finding.fix, unsafe=True) for finding in checked.findings)
    if safe:
        parts.append(f"{safe} fixable with --fix.")
    if all_ > safe:
        parts.append(f"{all_ - safe} {'more ' if safe else ''}fixable with --fix --unsafe-fixes.")
    return " ".join(parts)


_WORDS = {"error": "error", "warning": "warning", "information": "remark"}


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _exit_code(checked: Checked, *, diff: bool, exit_zero: bool) -> int:
    from exportlens.finding import Severity

    if checked.problems:
        return 2
    found = (
        bool(checked.changed)
        if diff
        else any(f.severity is not Severity.INFORMATION for f in checked.findings)
    )
    return int(found and not exit_zero)
