"""`exportlens repair`: export, blame, fix, and again, until the model exports and equals eager."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from exportlens.export.repair import Repair, Step


@click.command(
    epilog="""\b
Examples:
  exportlens repair net.py:Net                        show the steps and the diff, then ask
  exportlens repair net.py:Net --write                write without asking
  exportlens repair net.py:Net --inputs "(torch.randn(2, 8),)" --mode both

Exit codes: 0 the model exports and equals eager (after the repair), 1 it does not, 2 it could not be run.
"""
)
@click.argument("model", metavar="FILE.py:NAME|package.module:NAME")
@click.option("--init", metavar="EXPR", help="Constructor arguments, as they stand in its parentheses.")
@click.option("--inputs", metavar="EXPR", help="Positional example inputs, a tuple.")
@click.option("--kwargs", metavar="EXPR", help="Example inputs by keyword, a dict.")
@click.option("--dynamic-shapes", metavar="EXPR", help="As for torch.export.export; Dim is at hand.")
@click.option(
    "--mode",
    type=click.Choice(["strict", "non-strict", "both"]),
    help="In which modes it has to export. [default: the one that the file's export call names, else both]",
)
@click.option("--write", is_flag=True, help="Write what was repaired without asking.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=600.0,
    show_default=True,
    metavar="S",
    help="Seconds for each export.",
)
@click.option("--python", "python", type=click.Path(path_type=Path), help="The interpreter that has torch.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    model: str,
    init: str | None,
    inputs: str | None,
    kwargs: str | None,
    dynamic_shapes: str | None,
    mode: str | None,
    write: bool,
    timeout: float,
    python: Path | None,
    output_format: str,
) -> None:
    """Repair MODEL: apply the fix for what stops its export, step by step, and prove the result.

    The files of its project are left as they are until you consent, and whenever the repair does not come to its end.
    """
    from dataclasses import replace

    from exportlens.config import BadSetting, load_config
    from exportlens.export.interpreters import find_interpreter
    from exportlens.export.models import proposals_for
    from exportlens.export.repair import repair
    from exportlens.export.request import ExportRequest, ModelInputs
    from exportlens.export.worker_process import WorkerUnusable
    from exportlens.repairing import Repairer
    from exportlens.source.files import UnreadableSource

    try:
        request = ExportRequest(
            model=model, given=ModelInputs(init, inputs, kwargs, dynamic_shapes), mode=mode, timeout=timeout
        )
        file = request.file
        if file is None:
            raise ValueError(
                f"{request.place!r} is no module of this folder; write the model as FILE.py:NAME"
            )
        if not file.is_file():
            raise ValueError(f"no such file: {request.place}")
        request = replace(request, proposals=proposals_for(request))
        tools = Repairer(file, load_config(file, {"mode": mode or "both"}))
        text = output_format == "text"
        done = repair(
            find_interpreter(python, file.parent), request, tools, _tell if text else lambda step: None
        )
    except (ValueError, BadSetting, OSError, UnreadableSource, WorkerUnusable) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    if not done.could_run:
        click.echo(
            f"error: {model} cannot be run, so there is nothing to repair yet: {done.reason}", err=True
        )
        sys.exit(2)
    if output_format == "json":
        click.echo(json.dumps(done.to_json(), indent=2))
    else:
        _show(done)
    if done.repaired and done.changed and (write or (text and _consent())):
        try:
            _write(done)
        except UnreadableSource as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2)
        for path in done.changed:
            click.echo(f"wrote {_shown(path)}", err=not text)
    sys.exit(0 if done.repaired else 1)


def _tell(step: Step) -> None:
    where = f"{_shown(step.path)}, line {step.line}: " if step.path and step.line else ""
    click.echo(f"{where}{_plainly(step.reason)}")
    if step.fix:
        click.echo(f"  {step.code}: {step.fix}")
    if step.withdrawn:
        click.echo(f"  withdrawn: {_plainly(step.withdrawn)}")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _plainly(text: str) -> str:
    """A failure in one line: in words for people where torch's are known, after the mode that they are of."""
    from exportlens.export.plain_words import explained

    line = _first_line(text)
    known = explained(line)
    mode = re.match(r"(?:strict|non-strict): ", line)
    return f"{mode[0] if mode else ''}{known.what}" if known is not None else line


def _show(done: Repair) -> None:
    if done.repaired and not done.changed:
        withdrawn = any(step.withdrawn for step in done.steps)
        rest = "as it stands; what was tried beyond that did not hold" if withdrawn else "nothing to repair"
        click.echo(f"{done.model} exports and equals eager: {rest}")
        return
    if done.changed:
        click.echo() if done.repaired else click.echo("\nThis was tried, and is not enough:")
        for line in done.diff(_shown).splitlines():
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            click.echo(click.style(line, fg=colour) if colour else line)
        click.echo()
    fixes = f"{done.fixes} fix{'es' if done.fixes != 1 else ''}"
    for output in done.left_out:
        click.echo(f"note: {output} is left out; everything else is equal")
    if done.repaired:
        click.echo(f"{done.model} exports and equals eager after {fixes}")
        return
    click.echo(f"gave up after {fixes}; the file is as it was")
    click.echo(f"  what is left: {_plainly(done.reason)}")
    for refusal in done.refusals:
        click.echo(f"  {refusal}")
    for path, row, words in done.elsewhere:
        click.echo(f"  {_shown(path)}, line {row}: {words}")
    if done.elsewhere:
        click.echo("These lie outside of the model's project, and were left alone.")


def _consent() -> bool:
    if not sys.stdin.isatty():
        click.echo("not written: give --write to write it")
        return False
    return click.confirm("Write this?", default=False)


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _write(done: Repair) -> None:
    """Replace the files, unless one is another by now. Raises UnreadableSource, and then leaves all as they were."""
    from exportlens.source.files import UnreadableSource, read_source, write_source

    before = {path: read_source(path) for path in done.changed}
    for path, now in before.items():
        if now.text != done.originals[path]:
            raise UnreadableSource(f"{_shown(path)} has changed since the repair began; nothing was written")
    written: list[Path] = []
    try:
        for path, text in done.changed.items():
            write_source(before[path], text)
            written.append(path)
    except UnreadableSource:
        for path in written:
            write_source(before[path], done.originals[path])
        raise
