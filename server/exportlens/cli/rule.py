"""`exportlens rule`: explain a rule."""

from __future__ import annotations

import difflib
import sys

import click


@click.command(
    epilog="""\b
Examples:
  exportlens rule EXL101        the page of one rule
  exportlens rule tensor-data   by its name
  exportlens rule --all         one line for each rule
"""
)
@click.argument("code", required=False)
@click.option("--all", "every", is_flag=True, help="List all rules.")
def command(code: str | None, every: bool) -> None:
    """Explain the rule CODE: what it does, why it matters, an example, and what to use instead."""
    from exportlens.rule import registry
    from exportlens.rule_page import page, title

    if every:
        for rule in registry():
            click.echo(f"{rule.code}  {rule.name:<36}{'fix' if rule.has_fix() else '   '}  {title(rule)}")
        return
    if code is None:
        raise click.UsageError(
            "Name a rule (exportlens rule EXL101), or list them all (exportlens rule --all)."
        )
    for rule in registry():
        if code.upper() == rule.code or code.lower() == rule.name:
            click.echo(page(rule).rstrip())
            return
    known = [word for rule in registry() for word in (rule.code, rule.name)]
    close = difflib.get_close_matches(code if code.islower() else code.upper(), known, 1)
    hint = f"did you mean {close[0]}?" if close else "`exportlens rule --all` lists them"
    click.echo(f"error: there is no rule {code!r}; {hint}", err=True)
    sys.exit(2)
