"""A report as text: what failed on which line, and one table of stages and targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from exportlens.export.plain_words import one_line
from exportlens.export.report import ModeReport, Report, TargetReport
from exportlens.finding import Finding, Severity


def render_report(report: Report, *, verbose: bool = False) -> str:
    """The whole report, coloured where the terminal takes it."""
    lines = [f"{report.model}  (torch {report.torch or '?'}, {report.interpreter})"]
    lines += _chosen_lines(report)
    lines += [_mode_line(mode) for mode in report.modes]
    if verbose:
        lines += [line for mode in report.modes[:1] for line in _histogram_lines(mode)]
    lines += _target_table(
        report.targets, cancelled=report.failure is not None and report.failure.kind == "cancelled"
    )
    for finding in report.findings:
        if finding.severity is not Severity.INFORMATION or verbose:
            lines += ["", *frame_lines(finding)]
    hints = sum(finding.severity is Severity.INFORMATION for finding in report.findings)
    if hints and not verbose:
        are = "1 line is" if hints == 1 else f"{hints} lines are"
        lines += ["", f"{are} left to the CPU by a target (--verbose lists them)"]
    if report.failure is not None and report.failure.kind == "cancelled":
        lines += ["", "cancelled: what is not told above was not tried"]
    elif report.failure is not None and not any(_tells(finding) for finding in report.findings):
        lines += [
            "",
            f"{click.style('failed', fg='red')} at {report.failure.stage}: {report.failure.message}",
        ]
    for target in report.targets:
        failure = target.failure
        if failure is not None and failure != report.failure and target.status != "unavailable":
            name = click.style(target.name, bold=True)
            lines += ["", f"{name} failed at {failure.stage}: {failure.message}"]
    if report.ok:
        lines += [
            "",
            click.style("confirmed", fg="green") + ": it exports, and equals eager on every case tried",
        ]
    elif report.failure is None:
        lines += ["", f"{click.style('not confirmed', fg='red')}: {_unconfirmed(report)}"]
    if not report.ok and report.log.strip() and verbose:
        lines += ["", "log:", report.log.rstrip()]
    return "\n".join(lines)


def _unconfirmed(report: Report) -> str:
    """Which targets stand against a program that exports and equals eager."""
    missing = [target.name for target in report.targets if target.status == "unavailable"]
    failed = [target.name for target in report.targets if target.status == "failed"]
    words = [f"{', '.join(failed)} failed"] if failed else []
    words += [f"{', '.join(missing)} cannot be used here"] if missing else []
    return f"it exports and equals eager, but {' and '.join(words) or 'not everything asked for was done'}"


def _chosen_lines(report: Report) -> list[str]:
    """What nobody gave: the constructor's arguments, the inputs and the dynamic shapes that were proposed and taken."""
    chosen = report.chosen or {}
    if not chosen.get("source"):
        return []
    inputs = [f"{chosen[field]}" for field in ("inputs", "kwargs") if chosen.get(field)]
    lines = [f"inputs from {chosen['source']}: {' and '.join(inputs) or 'none'}"]
    if chosen.get("init"):
        lines.append(f"made as {report.model.rpartition(':')[2].partition('.')[0]}({chosen['init']})")
    if chosen.get("dynamic_shapes"):
        lines.append(f"dynamic shapes: {chosen['dynamic_shapes']}")
    return lines


def _mode_line(mode: ModeReport) -> str:
    comparison: dict[str, Any] = mode.comparison or {}
    same_as = comparison.get("same_as")
    if mode.failure is not None and mode.failure.kind == "cancelled":
        return f"  {mode.mode:<12} cancelled at {mode.failure.stage}, after {mode.seconds:.1f} s"
    if mode.failure is not None:
        word = click.style("fails", fg="red")
        same = f", the same program as in {same_as} mode" if same_as else ""
        return f"  {mode.mode:<12} {word} at {mode.failure.stage} ({mode.failure.kind}){same}, {mode.seconds:.1f} s"
    cases = comparison.get("cases", [])
    tried = sum(case["status"] == "equal" for case in cases)
    skipped = sum(case["status"] == "skipped" for case in cases)
    words = f"{tried} cases equal, max error {_error(comparison.get('max_abs_error'))}"
    words += f", {skipped} refused by eager too" if skipped else ""
    exports = f"  {mode.mode:<12} {click.style('exports', fg='green')}"
    if same_as:
        return f"{exports}, the same program as in {same_as} mode: compared once, {mode.seconds:.1f} s"
    lines = [f"{exports}, {words}, {mode.seconds:.1f} s"]
    dims = [f"{' = '.join(d['places'])}: {d['low']} to {d['high'] or 'any'}" for d in mode.dynamic_dims]
    latency = comparison.get("latency") or {}
    eager, exported = (latency.get(key) for key in ("eager_ms", "exported_ms"))
    calls = f"a call takes {_number(eager)} -> {_number(exported)} ms (eager -> exported)"
    if exported is None:  # a slow model's program is not called again to be timed
        calls = f"a call takes {_number(eager)} ms in eager"
    facts = [
        f"dynamic {', '.join(dims)}" if dims else "fixed sizes",
        calls,
        f"peak memory {_size(mode.peak_memory)}",
        _operators(mode.histogram),
    ]
    lines.append(f"  {'':<12} {'; '.join(facts)}")
    notes = [f"{case['case']}: {case['note']}" for case in cases if case.get("note")]
    notes += [*comparison.get("warnings", ()), *comparison.get("notes", ())]
    lines += [f"    note: {note}" for note in notes]
    return "\n".join(lines)


def _operators(histogram: dict[str, int]) -> str:
    count, kinds = sum(histogram.values()), len(histogram)
    return f"{count} operator{'s' * (count != 1)} of {kinds} kind{'s' * (kinds != 1)}"


def _histogram_lines(mode: ModeReport) -> list[str]:
    """The operators of a program, most frequent first."""
    width = max(map(len, mode.histogram), default=0)
    return [f"    {name:<{width}}  {count}" for name, count in mode.histogram.items()]


def _size(count: int | None) -> str:
    """A number of bytes as people read it."""
    if count is None:
        return "-"
    return f"{count / 2**20:.1f} MiB" if count >= 1 << 20 else f"{count / 2**10:.1f} KiB"


def _error(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def _number(value: float | None) -> str:
    """A quantity with two significant digits, written out as people read it."""
    return "-" if value is None else f"{float(f'{value:.2g}'):,.10g}"


def _target_table(targets: list[TargetReport], *, cancelled: bool) -> list[str]:
    if not targets:
        return []
    if all(target.status == "skipped" for target in targets):
        names = ", ".join(target.name for target in targets)
        if cancelled:
            return []
        return ["", f"  not tried on {names}: there is no program to lower"]
    heads = ("target", "status", "stage", "seconds", "max error", "eager -> here", "size", "peak memory")
    rows = [(*heads, "taken", "left", "artifact")]
    for target in targets:
        latency = target.latency or {}
        times = (
            f"{_number(latency.get('eager_ms'))} -> {_number(latency.get('artifact_ms'))} ms"
            if latency
            else "-"
        )
        comparison = target.comparison or {}
        rows.append(
            (
                target.name,
                "cancelled" if target.failure and target.failure.kind == "cancelled" else target.status,
                target.stage or "-",
                "-" if target.seconds is None else f"{target.seconds:.1f}",
                _error(comparison.get("max_abs_error")),
                times,
                _size(target.bytes),
                _size(target.peak_memory),
                "-" if target.delegated is None else str(target.delegated),
                str(len(target.left)) if target.delegated is not None else "-",
                str(target.artifact or "-"),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [""] + [
        "  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    for target in targets:
        if target.failure is not None and target.status == "unavailable":
            lines.append(f"  {target.name}: {target.failure.message}")
        lines += [f"  {target.name}: {note}" for note in target.notes]
        cases = (target.comparison or {}).get("cases", [])
        lines += [f"  {target.name}: {case['case']}: {case['note']}" for case in cases if case.get("note")]
    return lines


def frame_lines(finding: Finding) -> list[str]:
    """A finding with its source line underlined, as `check` shows it."""
    start, end = finding.range.start, finding.range.end
    place = f"{_shown(finding.path)}:{start.line + 1}:{start.column + 1}"
    colour = "red" if finding.severity is Severity.ERROR else "yellow"
    lines = [f"{place}: {click.style(finding.code, fg=colour)} {finding.message}"]
    try:
        text = finding.path.read_text(errors="replace").splitlines()[start.line]
    except (OSError, IndexError):
        text = ""
    if text:
        width = max(1, (end.column if end.line == start.line else len(text)) - start.column)
        number = f"{start.line + 1:>5}"
        lines += [f"{number} | {text}", f"      | {' ' * start.column}{click.style('^' * width, fg=colour)}"]
    lines += [f"      = {note}" for note in finding.notes]
    if said := _torchs_words(finding):
        lines.append(f"      = torch: {said}")
    if finding.url:
        lines.append(f"      = {finding.url}")
    return lines


def _tells(finding: Finding) -> bool:
    """Whether a finding already says why the export itself failed."""
    return finding.severity is Severity.ERROR and "target" not in finding.data and finding.code != "EXP010"


def _torchs_words(finding: Finding) -> str:
    """torch's own message on one line, where the finding says it in other words."""
    said = one_line(finding.data.get("torch", "").split("\n\n")[0], 300)
    return "" if not said or one_line(said, 80).rstrip("…") in finding.message else said


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
