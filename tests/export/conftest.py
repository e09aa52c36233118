"""One worker for all tests of a process: its warm parent serves them all, which is also what is tested."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from exportlens.export.models import ModelInfo, find_models
from exportlens.export.report import Report
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.session import Session

MODELS = Path(__file__).parent / "models"
HEAD = "import torch\nfrom torch import nn\n"


def found(tmp_path: Path, text: str) -> list[ModelInfo]:
    """The models of a file with this text, below the imports of torch."""
    return find_models(tmp_path / "net.py", HEAD + dedent(text))


class Runner:
    """Runs requests in one session, from synchronous tests."""

    def __init__(self, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.session = Session(Path(sys.executable), **options)

    def export(self, model: str, inputs: str = "(torch.randn(2, 8),)", **words: Any) -> Report:
        """Export `FILE:Name` of tests/export/models. `init` and `dynamic_shapes` are expressions."""
        given = ModelInputs(words.pop("init", None), inputs, None, words.pop("dynamic_shapes", None))
        words.setdefault("targets", ())
        file, _, name = model.partition(":")
        request = ExportRequest(f"{MODELS / file}:{name}", given, **words)
        return self.run(self.session.run(request))

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def close(self) -> None:
        self.run(self.session.close())
        self.loop.close()


@pytest.fixture(scope="session")
def worker() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()
