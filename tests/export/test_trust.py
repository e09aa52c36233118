"""What loads a program can run code: only the worker does, which is a process of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import exportlens

SERVER = Path(exportlens.__file__).parent
IN_THE_WORKER = ("export/worker/", "export/targets/", "proof/prover.py")
"""What runs in the user's interpreter, in processes that are started for it."""


def imported(file: Path) -> set[str]:
    """The top names of all that a file imports, at once or later."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_only_the_worker_imports_torch() -> None:
    """So nothing else can load a `.pt2`: neither the language server nor the command."""
    files = {file.relative_to(SERVER).as_posix(): file for file in SERVER.rglob("*.py")}
    outside = {name: file for name, file in files.items() if not name.startswith(IN_THE_WORKER)}
    assert len(outside) > 50 and len(files) - len(outside) > 30
    assert [name for name, file in outside.items() if "torch" in imported(file)] == []
    inside = [name for name, file in files.items() if name not in outside]
    assert any("torch" in imported(files[name]) for name in inside)
