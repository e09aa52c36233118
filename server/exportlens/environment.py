"""What is installed beside an interpreter, read from its folders without starting it."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

_DIST = re.compile(r"torch-(?P<version>\d[^-]*)\.(?:dist-info|egg-info)$")


def installed_torch(interpreter: Path) -> str | None:
    """The version of torch that `interpreter` would import ("2.13.0+cpu"), None when it has none.

    Reads the names of metadata folders only; the interpreter is started just when its layout is not one of
    the usual.
    """
    folders = site_packages(interpreter)
    if not folders:
        folders = _asked(interpreter)
    return _version_in(folders, tuple(_modified(folder) for folder in folders))


def site_packages(interpreter: Path) -> tuple[Path, ...]:
    """The folders from which `interpreter` imports third-party packages, as far as its layout tells."""
    prefix = Path(os.path.abspath(interpreter)).parent.parent
    folders = _libraries(prefix)
    settings = _environment_settings(prefix)
    if settings is None:
        folders += [
            folder
            for folder in _libraries(Path(os.path.realpath(interpreter)).parent.parent)
            if folder not in folders
        ]
    elif settings.get("include-system-site-packages", "").lower() == "true" and "home" in settings:
        folders += _libraries(Path(settings["home"]).parent)
    linked = [target for folder in folders for target in _path_files(folder)]
    return tuple(dict.fromkeys([*folders, *linked]))


def _libraries(prefix: Path) -> list[Path]:
    patterns = (
        "lib/python3*/site-packages",
        "lib64/python3*/site-packages",
        "Lib/site-packages",
        "lib/python3*/dist-packages",
        "lib/python3/dist-packages",
        "local/lib/python3*/dist-packages",
    )
    found: dict[str, Path] = {}
    for pattern in patterns:
        for folder in sorted(prefix.glob(pattern)):
            if folder.is_dir():
                found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def _environment_settings(prefix: Path) -> dict[str, str] | None:
    """The contents of pyvenv.cfg; None when `prefix` is no virtual environment."""
    try:
        text = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _path_files(folder: Path) -> list[Path]:
    """Folders that `.pth` files add (lines of code in them are passed over)."""
    targets = []
    for file in sorted(folder.glob("*.pth")):
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            if line and not line.startswith(("#", "import ", "import\t")) and (folder / line).is_dir():
                targets.append(folder / line)
    return targets


def _modified(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


@functools.lru_cache(maxsize=64)
def _version_in(folders: tuple[Path, ...], _modified: tuple[int, ...]) -> str | None:
    for folder in folders:
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in sorted(entries, reverse=True):
            if match := _DIST.match(entry):
                return match["version"]
    return None


@functools.lru_cache(maxsize=64)
def _asked(interpreter: Path) -> tuple[Path, ...]:
    """The interpreter's own word on its folders, for layouts that are not known here."""
    code = "import sys; print('\\n'.join(path for path in sys.path if path.endswith('-packages')))"
    try:
        done = subprocess.run(
            [str(interpreter), "-c", code], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(Path(line) for line in done.stdout.splitlines() if line)
