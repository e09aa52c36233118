"""Settings from the editor: at initialisation, from the section `exportlens`, and when they change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lsprotocol import types

from exportlens.lsp.server import Permissions, Server

SECTION = "exportlens"
_KEYS = frozenset(
    {
        "torch-version",
        "mode",
        "training",
        "select",
        "ignore",
        "exclude",
        "per-file-ignores",
        "target",
        "interpreter",
    }
)


def settings_of(values: Any) -> dict[str, Any]:
    """The settings that an analysis knows, of those that an editor sends (in camel case); empty ones, and what is not
    switched on, count as not given.
    """
    if not isinstance(values, Mapping):
        return {}
    if isinstance(values.get(SECTION), Mapping):
        values = values[SECTION]
    settings: dict[str, Any] = {}
    for key, value in values.items():
        name = re.sub(r"[A-Z]", lambda letter: f"-{letter[0].lower()}", str(key))
        if name in _KEYS and value not in (None, "", [], {}, False):
            settings[name] = value
    return settings


def permissions_of(values: Any, before: Permissions) -> Permissions:
    """What the editor lets run by itself; what it does not say stays as it was."""
    if not isinstance(values, Mapping):
        return before
    if isinstance(values.get(SECTION), Mapping):
        values = values[SECTION]
    limits = values.get("export")
    timeout = limits.get("timeout") if isinstance(limits, Mapping) else None
    return Permissions(
        trusted=bool(values.get("trusted", before.trusted)),
        confirm_on_save=bool(values.get("confirmOnSave", before.confirm_on_save)),
        mode=str(values.get("mode") or before.mode),
        timeout=float(timeout) if isinstance(timeout, (int, float)) and timeout > 0 else before.timeout,
    )


def register(server: Server) -> None:
    """Register the features of this file."""
    initial: dict[str, Any] = {}

    def take(values: Any) -> None:
        server.permissions = permissions_of(values, server.permissions)
        settings = {**initial, **settings_of(values)}
        if settings != server.analysis.settings:
            server.analysis.configure(settings)
            server.sync.recheck()

    async def ask() -> None:
        answers = await server.workspace_configuration_async(
            types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
        )
        take(answers[0] if answers else None)

    def can_ask() -> bool:
        workspace = server.client_capabilities.workspace
        return bool(workspace and workspace.configuration)

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        initial.update(settings_of(params.initialization_options))
        server.permissions = permissions_of(params.initialization_options, server.permissions)
        options = params.initialization_options
        server.hover_shows_diagnostics = isinstance(options, Mapping) and bool(
            options.get("hoverShowsDiagnostics")
        )
        server.analysis.configure(initial)

    @server.feature(types.INITIALIZED)
    async def initialized(_: types.InitializedParams) -> None:
        if can_ask():
            await ask()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        if can_ask():
            await ask()
        else:
            take(params.settings)
