"""`exportlens check --fix`: what is written, and what stays as it was."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

READS_DATA = """# -*- coding: latin-1 -*-
import torch


class Detached(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.data * 2  # caf\xe9
        return y.data + x.data
"""


def check(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exportlens", "check", "--torch-version", "2.13", *words]
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, check=False, timeout=120)


def test_fixes_keep_encoding_line_ends_mode_and_links(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_bytes(READS_DATA.replace("\n", "\r\n").encode("latin-1"))
    file.chmod(0o640)
    (tmp_path / "link.py").symlink_to(file)
    done = check("link.py", "--fix", "--unsafe-fixes", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = READS_DATA.replace(".data", ".detach()").replace("\n", "\r\n").encode("latin-1")
    assert file.read_bytes() == expected
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert (tmp_path / "link.py").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.py", "model.py"]


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_bytes(READS_DATA.encode("latin-1"))
    check("--fix", "--unsafe-fixes", cwd=tmp_path)
    once = file.read_bytes()
    check("--fix", "--unsafe-fixes", cwd=tmp_path)
    assert file.read_bytes() == once


def test_diff_shows_and_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_bytes(READS_DATA.encode("latin-1"))
    before = file.read_bytes()
    done = check("--diff", "--unsafe-fixes", cwd=tmp_path)
    assert done.returncode == 1
    assert "\n-        return y.data + x.data\n" in done.stdout
    assert "\n+        return y.detach() + x.detach()\n" in done.stdout
    assert file.read_bytes() == before


def test_standard_input_is_fixed_to_standard_output(tmp_path: Path) -> None:
    given = subprocess.run(
        [sys.executable, "-m", "exportlens", "check", "-", "--fix", "--unsafe-fixes"],
        cwd=tmp_path,
        input=READS_DATA.replace("latin-1", "utf-8").encode(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert given.stdout.decode() == READS_DATA.replace("latin-1", "utf-8").replace(".data", ".detach()")
