"""`exportlens export`: export one model for real, compare it with eager, lower it to targets."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exportlens.cli.words import separated

if TYPE_CHECKING:
    from exportlens.export.report import Report
    from exportlens.export.request import ExportRequest
    from exportlens.export.session import Progress


@click.command(
    epilog="""\b
Examples:
  exportlens export net.py:Net --inputs "(torch.randn(2, 8),)"
  exportlens export net.py:Net --init "dim=8" --target torch --target aoti-cpu --output exported
  exportlens export net.py:Net --dynamic-shapes "{'x': {0: Dim('batch', min=1, max=64)}}"
  exportlens export transformers:BertModel --init "transformers.BertConfig()" --target all

Without --init and --inputs they are taken from [tool.exportlens.models] in pyproject.toml, from an export
call or
example_inputs in the file, or proposed from the model's first layers (see `exportlens models`).
"""
)
@click.argument("model", metavar="FILE.py:NAME|package.module:NAME")
@click.option("--init", metavar="EXPR", help="Constructor arguments, as they stand in its parentheses.")
@click.option("--inputs", metavar="EXPR", help="Positional example inputs, a tuple.")
@click.option("--kwargs", metavar="EXPR", help="Example inputs by keyword, a dict.")
@click.option(
    "--dynamic-shapes",
    metavar="EXPR",
    help="As for torch.export.export; Dim is at hand. `auto`: batch and sequences, as the model suggests.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="A target, several with commas, or `all`; may be repeated. [default: torch]",
)
@click.option(
    "--mode",
    type=click.Choice(["strict", "non-strict", "both"]),
    help="How to trace. [default: as your torch does]",
)
@click.option("--train", is_flag=True, help="Export in training mode instead of eval.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where artifacts go. [default: exported]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=600.0,
    show_default=True,
    metavar="S",
    help="Seconds that the export, and each target, may take.",
)
@click.option("--memory-limit", metavar="SIZE", help="Memory that the worker may use, such as 8G.")
@click.option(
    "--draft", is_flag=True, help="On failure, let draft_export list the model's other failures too."
)
@click.option(
    "--python",
    "python",
    type=click.Path(path_type=Path),
    help="The interpreter that has torch and the model's packages.",
)
@click.option(
    "--target-python",
    "target_pythons",
    multiple=True,
    metavar="NAME=PATH",
    help="Another interpreter, with the same torch, for one target's packages; may be repeated.",
)
@click.option(
    "--save-inputs",
    is_flag=True,
    help="Write the inputs with which eager ran to [tool.exportlens.models] in pyproject.toml.",
)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report as one page.",
)
@click.option("--verbose", is_flag=True, help="Show what the model and torch print.")
def command(
    model: str,
    init: str | None,
    inputs: str | None,
    kwargs: str | None,
    dynamic_shapes: str | None,
    targets: tuple[str, ...],
    mode: str | None,
    train: bool,
    output: Path | None,
    timeout: float,
    memory_limit: str | None,
    draft: bool,
    python: Path | None,
    target_pythons: tuple[str, ...],
    save_inputs: bool,
    output_format: str,
    html: Path | None,
    verbose: bool,
) -> None:
    """Export MODEL for real, compare it with eager, and lower it to hardware targets.

    Exit code 0 when everything asked for exports and equals eager; 1 when something fails or differs; 2 when
    the
    model could not be imported, constructed or fed, or the interpreter is unusable.
    """
    from exportlens.export.interpreters import find_interpreter
    from exportlens.export.request import ExportRequest, ModelInputs, parse_size
    from exportlens.export.session import run_export

    try:
        request = ExportRequest(
            model=model,
            given=ModelInputs(init, inputs, kwargs, dynamic_shapes),
            mode=mode,
            targets=tuple(separated(targets)) or ("torch",),
            target_pythons=interpreters_of(target_pythons),
            output=(output or Path("exported")).absolute(),
            timeout=timeout,
            memory_limit=parse_size(memory_limit) if memory_limit else None,
            train=train,
            draft=draft,
        )
        if request.file is not None and not request.file.is_file():
            raise ValueError(f"no such file: {request.place}")
        request = _with_proposals(request)
        start = request.file.parent if request.file else Path.cwd()
        teller = _Teller(output_format, verbose)
        try:
            report = run_export(find_interpreter(python, start), request, teller)
        finally:
            teller.clear()
    except ValueError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    from exportlens.repairing import findings_with_fixes

    try:
        report.findings = findings_with_fixes(report, mode)
    except Exception as error:  # a real export's report is not lost for the sake of an addition to it
        click.echo(f"warning: the rules could not be asked for fixes: {error}", err=True)
    if save_inputs:
        _save_inputs(report, request)
    if html is not None:
        from exportlens.export.page import write_page

        write_page(report, html)
    if output_format == "json":
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        from exportlens.export.text import render_report

        click.echo(render_report(report, verbose=verbose))
        if html is not None:
            click.echo(f"report: {html}")
    sys.exit(report.exit_code)


def interpreters_of(words: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
    """`NAME=PATH` pairs. Raises ValueError on anything else."""
    found = []
    for word in words:
        name, equals, path = word.partition("=")
        if not (name and equals and path):
            raise ValueError(f"not a target's interpreter: {word!r}; write it as NAME=PATH")
        found.append((name, Path(path)))
    return tuple(found)


def _save_inputs(report: Report, request: ExportRequest) -> None:
    """Keep what eager took, so that nobody has to give or to guess it again; said on stderr."""
    from exportlens.export.configured import save_chosen

    try:
        file = save_chosen(request, report)
    except (OSError, ValueError) as error:
        click.echo(f"error: the inputs were not saved: {error}", err=True)
        return
    click.echo(f"inputs saved to {file}", err=True)


def _with_proposals(request: ExportRequest) -> ExportRequest:
    """Fill what was not given from what the file says, where it says anything. Raises ValueError where it says
    nothing of dynamic shapes, and they were asked for.
    """
    from dataclasses import replace

    from exportlens.export.models import AUTOMATIC, proposals_for, with_dynamic_shapes

    request = replace(request, proposals=proposals_for(request))
    return with_dynamic_shapes(request) if request.given.dynamic_shapes == AUTOMATIC else request


class _Teller:
    """Progress on one line of a terminal; silent elsewhere."""

    def __init__(self, output_format: str, verbose: bool) -> None:
        self._live = sys.stderr.isatty() and output_format == "text"
        self._verbose = verbose
        self._told = False

    def __call__(self, progress: Progress) -> None:
        if progress.stage == "log":
            if self._verbose:
                click.echo(progress.log, nl=False, err=True)
        elif self._live:
            click.echo(f"\r\x1b[K{progress.subject}: {progress.stage} ...", nl=False, err=True)
            self._told = True

    def clear(self) -> None:
        """Leave an empty line to whoever writes next, and to the terminal when the run is cancelled."""
        if self._told:
            click.echo("\r\x1b[K", nl=False, err=True)
