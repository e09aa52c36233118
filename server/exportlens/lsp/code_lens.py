"""CodeLens: "Export..." above every model."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from exportlens.lsp.convert import to_path, to_range
from exportlens.lsp.server import Server


def register(server: Server) -> None:
    """Register the features of this file."""

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        from exportlens.export.models import find_models

        document = server.analysis.open.get(to_path(params.text_document.uri))
        if document is None:
            return []
        models = await asyncio.to_thread(find_models, document.path, document.text)
        return [
            types.CodeLens(
                to_range(model.range, document.lines, server.encoding),
                types.Command(
                    title="Export...",
                    command="exportlens.export",
                    arguments=[{"uri": document.uri, "model": model.name}],
                ),
            )
            for model in models
            if model.kind == "module"
        ]
