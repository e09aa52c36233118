"""The targets' environments: `onnxruntime` and `executorch` are installed when missing, the others by `make
targets`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exportlens.export.report import Report
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.session import Session

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


@pytest.fixture(scope="session")
def session() -> Iterator[tuple[Session, asyncio.AbstractEventLoop]]:
    """One session for all tests: it exports in our own environment, and keeps each target's worker warm."""
    loop = asyncio.new_event_loop()
    opened = Session(Path(sys.executable))
    yield opened, loop
    loop.run_until_complete(opened.close())
    loop.close()


@pytest.fixture
def export(session: tuple[Session, asyncio.AbstractEventLoop], tmp_path: Path) -> Export:
    """Export a model of tests/export/models to targets in a target's environment."""

    def run(name: str, model: str, inputs: str, *targets: str, dynamic_shapes: str | None = None) -> Report:
        file, _, cls = model.partition(":")
        python = environment(name)
        request = ExportRequest(
            f"{MODELS / file}:{cls}",
            ModelInputs(inputs=inputs, dynamic_shapes=dynamic_shapes),
            targets=targets,
            target_pythons=tuple((target, python) for target in targets if target != "torch"),
            output=tmp_path,
        )
        opened, loop = session
        return loop.run_until_complete(opened.run(request))

    return run
