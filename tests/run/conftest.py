"""One session for all examples of a process: a worker that imports torch once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exportlens.config import load_config
from exportlens.export.models import proposals_for
from exportlens.export.repair import Repair, repair_model
from exportlens.export.report import Report
from exportlens.export.request import ExportRequest
from exportlens.export.session import Session
from exportlens.repairing import Repairer

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def request_of(model: str, **words: Any) -> ExportRequest:
    """An example as a user names it, with the inputs that its file proposes."""
    request = ExportRequest(str(EXAMPLES / model), **words)
    return replace(request, proposals=proposals_for(request))


class Workshop:
    """Exports and repairs examples, one after the other."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.session = Session(Path(sys.executable))

    def export(self, model: str, mode: str, output: Path) -> Report:
        request = request_of(model, mode=mode, targets=("torch",), output=output)
        return self.loop.run_until_complete(self.session.run(request))

    def repair(self, model: str) -> Repair:
        request = request_of(model, mode="both")
        assert request.file is not None
        tools = Repairer(request.file, load_config(request.file, {"mode": "both"}))
        return self.loop.run_until_complete(repair_model(self.session, request, tools))

    def close(self) -> None:
        self.loop.run_until_complete(self.session.close())
        self.loop.close()


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    made = Workshop()
    yield made
    made.close()
