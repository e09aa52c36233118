"""`exportlens check --verify`: a fix is kept only if the fixed model equals the original; real worker, real rules.

One rule is a pack of its own, found by its entry point, whose fix is wrong on purpose.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKS = Path(__file__).resolve().parents[1] / "packs"
MODELS = """import torch
from torch import nn


class Gate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = torch.relu(x)
        return torch.sin(x)


class Sized(nn.Module):
    def __init__(self, path):
        super().__init__()
        with open(path) as sizes:
            self.size = float(sizes.read())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.data * self.size
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path


def check(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exportlens", "check", "models.py", "--unsafe-fixes", *words]
    paths = [str(PACKS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, check=False, timeout=400
    )


def test_a_wrong_fix_is_withdrawn_and_the_right_ones_are_written(project: Path) -> None:
    done = check(project, "--fix", "--verify", "--interpreter", sys.executable, "--output-format", "json")
    assert done.returncode == 1, done.stdout + done.stderr
    rows: dict[str, dict[str, Any]] = {row["code"]: row["fix"] for row in json.loads(done.stdout)}
    assert rows["EXL990"]["verified"] is False and rows["EXL990"]["applied"] is False
    assert "differs from the original" in rows["EXL990"]["reason"]
    assert rows["EXL101"]["verified"] is True and rows["EXL101"]["applied"] is True
    assert rows["EXL201"]["verified"] is None and "Sized" in rows["EXL201"]["reason"]
    text = (project / "models.py").read_text()
    assert "torch.cond(" in text and "torch.sin(" in text and "torch.cos(" not in text


def test_diff_shows_what_holds_only(project: Path) -> None:
    done = check(project, "--diff", "--verify", "--interpreter", sys.executable, "--select", "EXL990,EXL201")
    assert "torch.cos(" not in done.stdout and "x.detach() * self.size" in done.stdout
    assert "models.py:9:16: EXL990 fix withdrawn: Use the cosine: the fixed model differs" in done.stderr
    assert "EXL201 fix not verifiable: " in done.stderr
    assert (project / "models.py").read_text() == MODELS


def test_verify_needs_something_to_verify(project: Path) -> None:
    done = check(project, "--verify")
    assert done.returncode == 2
    assert done.stderr == "error: --verify tries fixes: give --fix or --diff beside it\n"
