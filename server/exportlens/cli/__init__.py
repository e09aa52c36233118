"""The command line: one small file per command, each imported only when it is called."""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import os
import sys
import traceback

import click

from exportlens import __version__

_COMMANDS = {
    "check": "Find what stops torch.export, and mend it.",
    "export": "Export a model for real, compare it with eager, lower it to targets.",
    "repair": "Export, blame, fix, and again, until the model exports.",
    "models": "List the models of files, with example inputs.",
    "targets": "List hardware targets, and what to install for them.",
    "survey": "Export many models to many targets.",
    "rule": "Explain a rule.",
    "server": "Start the language server for editors.",
}


_CANCELLED = {
    "check": "what was written before stands",
    "repair": "the file is as it was",
    "survey": "the results so far are kept, and the same command goes on after them",
}
"""What a user who ends a command by Ctrl-C has to know, beside that it was ended."""


class _Commands(click.Group):
    """Finds `exportlens.cli.<name>:command` when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in _COMMANDS if importlib.util.find_spec(f"exportlens.cli.{name}") is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS or importlib.util.find_spec(f"exportlens.cli.{cmd_name}") is None:
            return None
        command = importlib.import_module(f"exportlens.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"exportlens.cli.{cmd_name}.command is no click command")
        command.name = cmd_name
        return command

    def invoke(self, ctx: click.Context) -> object:
        """As usual; Ctrl-C ends with one line, and with the exit code of what could not be run."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            known = _CANCELLED.get(ctx.invoked_subcommand or "")
            click.echo("\r\x1b[K" if sys.stderr.isatty() else "", nl=False, err=True)
            click.echo(f"cancelled: {known}" if known else "cancelled", err=True)
            sys.exit(2)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name]) for name in self.list_commands(ctx)])


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="""\b
Examples:
  exportlens check .                           find what stops torch.export below this folder
  exportlens check model.py --fix              mend what can be mended safely
  exportlens export model.py:Net --target all  export for real, and say which targets take it
  exportlens rule EXL101                       explain a rule

\b
Exit codes: 0 nothing found, 1 errors or warnings found (or an export failed), 2 could not run, or cancelled.
""",
)
@click.version_option(__version__, prog_name="exportlens")
def group() -> None:
    """ExportLens: what stops torch.export, where, and how to mend it."""


# The context's object where a process runs one command and ends.
OWN_PROCESS = "own process"


def main() -> None:
    """The console script."""
    # The interpreter's last collection would visit every tree that was read, only to free what the system frees at once.
    atexit.register(gc.freeze)
    try:
        group.main(prog_name="exportlens", standalone_mode=True, obj=OWN_PROCESS)
    except BrokenPipeError:
        # The reader (`| head`) has gone; nothing is left to be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        click.echo(
            f"error: ExportLens itself failed, which is a defect of it: {type(error).__name__}: {error} "
            f"(line {place.lineno} of {os.path.basename(place.filename)}). Please report it with what "
            "EXPORTLENS_TRACEBACK=1 shows beside this line.",
            err=True,
        )
        if os.environ.get("EXPORTLENS_TRACEBACK"):
            traceback.print_exception(error)
        sys.exit(2)


__all__ = ["OWN_PROCESS", "group", "main"]
