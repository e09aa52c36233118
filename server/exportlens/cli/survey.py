"""`exportlens survey`: many models on many targets, resumable, on this machine or on a Ray cluster."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from exportlens.cli.words import separated


@click.command(
    epilog="""\b
Examples:
  exportlens survey src --targets torch,aoti-cpu
  exportlens survey models.py --mode both --results results.jsonl --html matrix.html
  exportlens survey src --ray 10.0.0.1:6379

A survey that was ended goes on where it was, as long as --results names the same file.
"""
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--targets",
    "--target",
    multiple=True,
    metavar="NAME",
    help="May be repeated, or several with commas. [default: torch]",
)
@click.option(
    "--target-python",
    "target_pythons",
    multiple=True,
    metavar="NAME=PATH",
    help="Another interpreter, with the same torch, for one target's packages; may be repeated.",
)
@click.option("--mode", type=click.Choice(["strict", "non-strict", "both"]), help="How to trace.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("survey.jsonl"),
    show_default=True,
    help="Where each model's result goes, one JSON line as it comes.",
)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the matrix as a page.")
@click.option("--jobs", type=click.IntRange(min=1), help="Models at a time. [default: half the processors]")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=300.0, show_default=True, metavar="S")
@click.option("--memory-limit", metavar="SIZE", help="Memory that each worker may use, such as 8G.")
@click.option("--ray", metavar="ADDRESS", help="Run on this Ray cluster (pip install 'exportlens[ray]').")
@click.option("--python", "python", type=click.Path(path_type=Path), help="The interpreter that has torch.")
def command(
    paths: tuple[Path, ...],
    targets: tuple[str, ...],
    target_pythons: tuple[str, ...],
    mode: str | None,
    results: Path,
    html: Path | None,
    jobs: int | None,
    timeout: float,
    memory_limit: str | None,
    ray: str | None,
    python: Path | None,
) -> None:
    """Confirm every model in PATHS on every target, with proposed inputs.

    Exit code 0 when all are confirmed; 1 when some are not; 2 when nothing could be run.
    """
    from exportlens.cli.export import interpreters_of
    from exportlens.cli.models import python_files
    from exportlens.export.interpreters import find_interpreter
    from exportlens.export.plain_words import one_line
    from exportlens.export.registry import choose
    from exportlens.export.request import ExportRequest, parse_size
    from exportlens.export.survey import (
        collect_jobs,
        end_last_line,
        matrix_html,
        read_results,
        summary_lines,
        survey_locally,
        survey_on_ray,
        why_not,
    )

    try:
        targets = tuple(separated(targets)) or ("torch",)
        choose(targets)
        limit = parse_size(memory_limit) if memory_limit else None
        pythons = interpreters_of(target_pythons)
    except ValueError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    template = ExportRequest(
        "any:model",
        mode=mode,
        targets=targets,
        target_pythons=pythons,
        timeout=timeout,
        memory_limit=limit,
    )
    wanted = collect_jobs(python_files(paths), template)
    if not wanted:
        click.echo("error: no models found in these paths", err=True)
        sys.exit(2)
    known = read_results(results)
    end_last_line(results)
    open_jobs = [job for job in wanted if job.key not in known]
    if len(open_jobs) < len(wanted):
        click.echo(f"{len(wanted) - len(open_jobs)} of {len(wanted)} models are in {results} already")
    interpreter = find_interpreter(python, paths[0])
    keys = {job.key for job in wanted}
    on = f"{len(targets)} target{'s' if len(targets) != 1 else ''}"
    models = f"{len(open_jobs)} model{'s' if len(open_jobs) != 1 else ''}"
    click.echo(f"{models} to confirm on {on}; each result is kept in {results} as it comes")

    def tell(row: dict[str, Any]) -> None:
        known[row["key"]] = row
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        verdict = click.style("ok", fg="green") if row["ok"] else click.style("failed", fg="red")
        kind, colon, said = why_not(row).partition(": ")
        why = f" ({kind}){colon}{one_line(said, 160)}" if kind else ""
        click.echo(f"[{len(known.keys() & keys)}/{len(wanted)}] {row['model']}: {verdict}{why}")

    try:
        if ray is not None:
            survey_on_ray(open_jobs, interpreter.absolute(), ray, tell)
        elif open_jobs:
            survey_locally(open_jobs, interpreter, jobs or max(1, (os.cpu_count() or 2) // 2), tell)
    except ImportError:
        click.echo("error: Ray is not installed: pip install 'exportlens[ray]'", err=True)
        sys.exit(2)
    except ConnectionError as error:
        click.echo(f"error: no Ray cluster answers at {ray}: {error}", err=True)
        sys.exit(2)
    rows = [known[job.key] for job in wanted if job.key in known]
    click.echo("")
    for line in summary_lines(rows):
        click.echo(line)
    if html is not None:
        html.write_text(matrix_html(rows), encoding="utf-8")
        click.echo(f"matrix: {html}")
    sys.exit(0 if all(row["ok"] for row in rows) else 1)
