"""`exportlens targets`: which hardware targets this machine and interpreter can export to."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  exportlens targets
  exportlens targets --python .venv/bin/python --output-format json
"""
)
@click.option("--python", "python", type=click.Path(path_type=Path), help="The interpreter to look in.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(python: Path | None, output_format: str) -> None:
    """List the targets, whether each can be used here, and what to install for the others.

    Exit code 0; 2 where the interpreter cannot be used.
    """
    from exportlens.export.interpreters import find_interpreter
    from exportlens.export.session import probe_targets
    from exportlens.export.worker_process import WorkerUnusable

    interpreter = find_interpreter(python, Path.cwd())
    try:
        infos = probe_targets(interpreter)
    except WorkerUnusable as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    if output_format == "json":
        click.echo(
            json.dumps({"interpreter": str(interpreter), "targets": [i.to_json() for i in infos]}, indent=2)
        )
        return
    width = max((len(info.name) for info in infos), default=0)
    for info in sorted(infos, key=lambda info: not info.available):
        mark = (
            click.style("available", fg="green") if info.available else click.style("missing  ", fg="yellow")
        )
        click.echo(f"{info.name:<{width}}  {mark}  {info.purpose}")
        click.echo(f"{'':<{width}}             {info.message}")
        if info.install:
            click.echo(f"{'':<{width}}             to get it: {info.install}")
        if info.available and not info.runs_here:
            click.echo(f"{'':<{width}}             lowers here; the artifact runs elsewhere")
