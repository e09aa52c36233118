"""The set-up: nothing to do where all is there, and a clear word for what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SET_UP = "scripts/set_up.py"


def set_up(*names: str, root: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SET_UP, *names],
        cwd=root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def checkout(folder: Path) -> Path:
    """What the set-up reads of a checkout, and nothing that was installed."""
    (folder / "scripts").mkdir(parents=True)
    for name in ("set_up.py", "torchvision_operators.py"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    for name in ("pyproject.toml", "package.json", "package-lock.json"):
        shutil.copy(ROOT / name, folder)
    return folder


def test_a_second_set_up_is_quick_and_silent() -> None:
    first = set_up("python", "compiler", "examples")
    assert first.returncode == 0, first.stderr
    start = time.monotonic()
    second = set_up("python", "compiler", "examples")
    assert time.monotonic() - start < 1.0
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


def test_missing_node_is_said_by_name(tmp_path: Path) -> None:
    result = set_up("extension", root=checkout(tmp_path), PATH="")
    assert result.returncode == 2
    assert "`node` is not installed" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_failing_command_shows_its_last_words(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / "package.json").write_text("{ this is no JSON")
    result = set_up("extension", root=root)
    assert result.returncode == 2
    assert "npm ci" in result.stderr
    assert "extension.log" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_step_that_failed_is_tried_again(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    assert set_up("extension", root=root, PATH="").returncode == 2
    assert set_up("extension", root=root, PATH="").returncode == 2


def test_an_incomplete_checkout_is_named(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / "package.json").unlink()
    result = set_up("extension", root=root)
    assert result.returncode == 2
    assert "package.json is missing from this checkout" in result.stderr
