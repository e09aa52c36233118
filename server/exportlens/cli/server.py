"""`exportlens server`: the language server."""

from __future__ import annotations

import click


@click.command(
    epilog="""\b
Editors start it as `exportlens server` (or `python -m exportlens server`) and talk to it over standard input
and output.
"""
)
@click.option(
    "--tcp",
    metavar="PORT",
    type=click.IntRange(1, 65535),
    help="Listen on a local TCP port instead, for debugging.",
)
def command(tcp: int | None) -> None:
    """Start the language server for editors, over standard input and output."""
    from exportlens.lsp.server import serve

    serve(tcp)
