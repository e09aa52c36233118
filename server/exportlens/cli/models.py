"""`exportlens models`: the models of files and folders, and the inputs that are proposed for them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

SKIPPED = {".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages", ".tools", "build", "dist"}


@click.command(
    epilog="""\b
Examples:
  exportlens models net.py
  exportlens models src --output-format json
"""
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(paths: tuple[Path, ...], output_format: str) -> None:
    """List the models in PATHS with the constructor arguments and inputs that an export of each would try
    first.

    Nothing is run. Exit code 0; 2 where a path cannot be read.
    """
    from exportlens.export.models import find_models

    found = []
    for file in python_files(paths):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            click.echo(f"error: {file} cannot be read: {error}", err=True)
            sys.exit(2)
        found += find_models(file, text)
    if output_format == "json":
        click.echo(json.dumps({"models": [info.to_json() for info in found]}, indent=2))
        return
    for info in found:
        start = info.range.start
        click.echo(f"{click.style(info.model, bold=True)}  {info.kind}, line {start.line + 1}")
        if not info.proposals:
            click.echo("    no inputs proposed: pass --inputs, or state them in [tool.exportlens.models]")
            continue
        first = info.proposals[0]
        words = {"--init": first.init, "--inputs": first.inputs, "--kwargs": first.kwargs}
        for option, said in {**words, "--dynamic-shapes": first.dynamic_shapes}.items():
            if said:
                click.echo(f"    {option} {json.dumps(said)}")
        if info.dynamic_shapes and not first.dynamic_shapes:
            click.echo(f"    for other sizes: --dynamic-shapes {json.dumps(info.dynamic_shapes)} (or auto)")
        more = len(info.proposals) - 1
        click.echo(f"    from {first.source}" + (f" ({more} more to try)" if more else ""))
    if not found:
        click.echo(
            "no models found: a model is a class whose base is an nn.Module, or what is passed to an export"
        )


def python_files(paths: tuple[Path, ...]) -> Iterator[Path]:
    """The Python files named, and those below the folders named, environments and caches left out."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        for file in sorted(path.rglob("*.py")):
            if not SKIPPED & set(file.relative_to(path).parts):
                yield file
