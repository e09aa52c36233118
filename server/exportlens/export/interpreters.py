"""Which Python runs the user's models: asked for, the active environment's, the project's, or our own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path


def _environment_python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _candidates(start: Path) -> Iterator[Path]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield _environment_python(Path(os.environ[variable]))
    for folder in (start, *start.parents):
        for name in (".venv", "venv"):
            yield _environment_python(folder / name)
    yield Path(sys.executable)
    for name in ("python3", "python"):
        found = shutil.which(name)
        if found:
            yield Path(found)


def has_torch(interpreter: Path) -> bool:
    """Whether torch lies in the interpreter's environment, by its folders alone (nothing is run)."""
    root = interpreter.parent.parent
    patterns = (
        "lib/python3*/site-packages/torch",
        "lib64/python3*/site-packages/torch",
        "Lib/site-packages/torch",
    )
    if any(next(root.glob(pattern), None) for pattern in patterns):
        return True
    # an environment may see another's packages through a .pth file; only the interpreter itself can tell
    return any(
        next(root.glob(f"{pattern[:-5]}*.pth"), None) and _asks(interpreter) for pattern in patterns[:1]
    )


def _asks(interpreter: Path) -> bool:
    import subprocess

    command = [
        str(interpreter),
        "-c",
        "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)",
    ]
    try:
        return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_interpreter(asked: Path | None, start: Path) -> Path:
    """The interpreter to export with: `asked`; else the first that has torch of the active environment, the
    project's (`.venv` at or above `start`), our own and PATH's; else the first that exists, whose lack of
    torch the
    worker then reports by name.
    """
    if asked is not None:
        return asked
    existing = [path for path in dict.fromkeys(_candidates(start.absolute())) if path.exists()]
    for path in existing:
        if has_torch(path):
            return path
    return existing[0] if existing else Path(sys.executable)
