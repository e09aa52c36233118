"""`exportlens repair`, as a user calls it: the real worker, real files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        h = self.linear(x)
        if h.sum() > 0:
            h = torch.relu(h)
        h.data.mul_(2)
        return h


if __name__ == "__main__":
    torch.export.export(Net(), (torch.randn(2, 4),))
"""
HOPELESS = MODEL.replace("h = torch.relu(h)", "return None")


def repair(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return exportlens(path.parent, "repair", f"{path}:Net", "--python", sys.executable, *options)


def exportlens(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exportlens", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)


def test_repairs_step_by_step_and_writes_on_consent_only(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(MODEL)
    shown = repair(path)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "EXL101: Rewrite with torch.cond" in shown.stdout
    assert "exports and equals eager after 2 fixes" in shown.stdout
    assert path.read_text() == MODEL
    written = repair(path, "--write", "--output-format", "json")
    assert written.returncode == 0, written.stdout + written.stderr
    assert [step["code"] for step in json.loads(written.stdout)["steps"]] == ["EXL101", "EXL202"]
    assert "torch.cond(" in path.read_text()
    assert ".detach().mul_(2)" in path.read_text()


def test_gives_up_with_the_reason_and_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(HOPELESS)
    given_up = repair(path, "--write")
    assert given_up.returncode == 1, given_up.stdout + given_up.stderr
    assert "the file is as it was" in given_up.stdout
    assert "returns None" in given_up.stdout
    assert path.read_text() == HOPELESS


def test_a_model_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    missing = repair(tmp_path / "nothing.py")
    assert missing.returncode == 2
    assert "no such file" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_an_interpreter_without_torch_is_said_plainly(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(MODEL)
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    done = repair(path, "--python", str(bare))
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_the_encoding_of_the_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    text = "# -*- coding: latin-1 -*-\r\n" + MODEL.replace("\n", "\r\n").replace(
        "h = torch.relu(h)", "h = torch.relu(h)  # caf\xe9"
    )
    path.write_bytes(text.encode("latin-1"))
    written = repair(path, "--write")
    assert written.returncode == 0, written.stdout + written.stderr
    data = path.read_bytes()
    assert b"# caf\xe9\r\n" in data and b"torch.cond(" in data and b"\n\n" not in data
