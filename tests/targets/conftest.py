"""The targets' environments: `onnxruntime` and `executorch` are installed when missing, the others by `make
targets`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from exportlens.export.report import Report
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.session import run_export

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "export" / "models"
ALWAYS = ("onnxruntime", "executorch")


def environment(name: str) -> Path:
    """The interpreter of a target's environment; skips where it is an optional one that is not there."""
    python = ROOT / ".tools" / f"targets-{name}" / "bin" / "python"
    if name in ALWAYS:
        subprocess.run([sys.executable, str(ROOT / "scripts" / "set_up_targets.py"), name], check=True)
    elif not python.exists():
        pytest.skip(f"no environment for {name}: make targets")
    return python


Export = Callable[..., Report]


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Export a model of tests/export/models to targets in a target's environment."""

    def run(name: str, model: str, inputs: str, *targets: str, dynamic_shapes: str | None = None) -> Report:
        file, _, cls = model.partition(":")
        given = ModelInputs(inputs=inputs, dynamic_shapes=dynamic_shapes)
        request = ExportRequest(f"{MODELS / file}:{cls}", given, targets=targets, output=tmp_path)
        return run_export(environment(name), request)

    return run
