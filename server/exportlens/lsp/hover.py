"""Hover: what a finding means, and what is believed of the values on its line."""

from __future__ import annotations

from lsprotocol import types

from exportlens.finding import Finding
from exportlens.lsp.server import Server
from exportlens.lsp.views import view_of
from exportlens.rule import registry

_MOST_BELIEFS = 12


def register(server: Server) -> None:
    """Register the features of this file."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        view = view_of(server, params.text_document.uri)
        if view is None:
            return None
        document, at = view.document, view.position(params.position)
        here = [
            finding
            for finding in server.analysis.findings_in(document.path)
            if finding.range.start <= at <= finding.range.end
        ]
        if not here:
            return None
        beliefs = await server.analysis.explain(document, at.line)
        # An editor that shows diagnostics in its hover has said the message and the notes already.
        parts = [_words(finding, repeat=not server.hover_shows_diagnostics) for finding in here]
        if beliefs:
            listed = "\n".join(f"- {belief}" for belief in beliefs[:_MOST_BELIEFS])
            parts.append(f"What ExportLens believes of the values on this line:\n\n{listed}")
        content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(parts))
        return types.Hover(content, view.shown(here[0].range))


def _words(finding: Finding, *, repeat: bool) -> str:
    link = f"[{finding.code}]({finding.url})" if finding.url else finding.code
    parts = [f"**{link}** `{finding.name}`"]
    if repeat:
        parts += [finding.message, *(f"*{note}*" for note in finding.notes)]
    rule = next((rule for rule in registry() if rule.code == finding.code), None)
    if rule is not None:
        parts.append(rule.documentation().split("\n\n")[0])
    if finding.data.get("torch"):
        parts.append(f"torch says:\n```text\n{finding.data['torch']}\n```")
    return "\n\n".join(parts)
