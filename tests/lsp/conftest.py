"""A real server in its own process, and an editor that talks to it over standard input and output."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_lsp
from lsp_editor import Editor
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "exportlens", "server"]),
    params=["visual-studio-code", "neovim", "emacs"],
    scope="function",
)
async def lsp(
    request: pytest.FixtureRequest, lsp_client: LanguageClient, tmp_path: Path
) -> AsyncIterator[None]:
    lsp_client.set_configuration({"exportlens": {"mode": "both", "torchVersion": "2.13"}})
    params = types.InitializeParams(
        capabilities=client_capabilities(request.param),
        root_uri=tmp_path.as_uri(),
        workspace_folders=[types.WorkspaceFolder(tmp_path.as_uri(), "work")],
        initialization_options={"interpreter": sys.executable, "mode": "both", "torchVersion": "2.13"},
    )
    result = await lsp_client.initialize_session(params)
    lsp_client.encoding = result.capabilities.position_encoding or "utf-16"
    yield
    await lsp_client.shutdown_session()


@pytest.fixture
def editor(lsp: LanguageClient, tmp_path: Path) -> Editor:
    return Editor(lsp, tmp_path)
