"""Starts VS Code (code-server) with the packaged extension, opened on a folder; `make code` calls it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
NODE = ROOT / ".tools" / "node24" / "bin" / "node"
CODE_SERVER = ROOT / ".tools" / "code-server" / "node_modules" / "code-server" / "out" / "node" / "entry.js"
EXTENSION = ROOT / "artifacts" / "exportlens.vsix"
HOME = ROOT / ".tools" / "editor"
SECONDS_TO_START = 60

# Paths on the machine that runs the extension: VS Code reads such settings at the level "Machine" only.
PYTHON = str(ROOT / ".venv" / "bin" / "python")
MACHINE_SETTINGS = {"exportlens.interpreter": PYTHON, "exportlens.server.interpreter": PYTHON}
# A quiet editor: what is on screen is ExportLens. The marketplace is off, so that nothing is fetched.
SETTINGS = {
    "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "update.mode": "none",
    "chat.disableAIFeatures": True,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "git.enabled": False,
    "editor.minimap.enabled": False,
}
NO_MARKETPLACE = json.dumps({"serviceUrl": "", "itemUrl": "", "resourceUrlTemplate": ""})


class EditorError(Exception):
    """Why the editor cannot be opened, and what to do."""


def code_server(*arguments: str | Path) -> list[str]:
    return [str(NODE), str(CODE_SERVER), *(str(argument) for argument in arguments)]


def folders() -> list[str | Path]:
    return ["--user-data-dir", HOME / "data", "--extensions-dir", HOME / "extensions"]


def prepare() -> None:
    """Write the settings where the user has none yet, and install the extension that was just packaged."""
    for needed in (NODE, CODE_SERVER, EXTENSION):
        if not needed.exists():
            raise EditorError(f"{needed.relative_to(ROOT)} is missing: run `make code`, which brings it in")
    for level, defaults in (("User", SETTINGS), ("Machine", MACHINE_SETTINGS)):
        settings = HOME / "data" / level / "settings.json"
        if not settings.exists():
            settings.parent.mkdir(parents=True, exist_ok=True)
            settings.write_text(json.dumps(defaults, indent=2))
    (HOME / "config.yaml").write_text("auth: none\n")
    installed = subprocess.run(
        code_server(*folders(), "--install-extension", EXTENSION, "--force"),
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode != 0:
        raise EditorError(f"the extension could not be installed:\n{installed.stdout}{installed.stderr}")


def free_port(wanted: int | None) -> int:
    """`wanted`, or one that nobody listens on. Raises EditorError when `wanted` is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise EditorError(
                f"port {wanted} cannot be used ({error.strerror}): choose another one"
            ) from None
        port: int = probe.getsockname()[1]
        return port


def wait_until_healthy(port: int, editor: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        if editor.poll() is not None:
            raise EditorError(f"code-server ended with exit code {editor.returncode}; its log is {log}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise EditorError(f"code-server did not answer within {SECONDS_TO_START} s; its log is {log}")


def serve(folder: Path, port: int) -> None:
    """Run code-server until it is interrupted."""
    log = HOME / "code-server.log"
    with log.open("w") as output:
        editor = subprocess.Popen(
            code_server(
                *("--config", HOME / "config.yaml", "--auth", "none", "--bind-addr", f"127.0.0.1:{port}"),
                *folders(),
                *("--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"),
                "--disable-getting-started-override",
            ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "EXTENSIONS_GALLERY": NO_MARKETPLACE},
        )
        try:
            wait_until_healthy(port, editor, log)
            print(
                f"\nVS Code with ExportLens: http://127.0.0.1:{port}/?folder={quote(str(folder))}", flush=True
            )
            print("Open hazards/data_dependent_if.py to begin. Ctrl-C ends it.", flush=True)
            editor.wait()
        except KeyboardInterrupt:
            print()
        finally:
            if editor.poll() is None:
                editor.terminate()
                editor.wait(timeout=10)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "examples")
    parser.add_argument("--port", type=int, help="default: any free one")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        prepare()
        serve(options.folder.resolve(), free_port(options.port))
    except EditorError as error:
        print(f"make code: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
