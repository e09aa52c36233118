"""From a request to the model's own import, first with a worker that has to import torch, then with a warm one."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.session import Progress, Session

MODEL = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)
"""


@dataclass(frozen=True)
class StartTimes:
    """Seconds until the worker turns to the model's file, and until the report is there, of one export after the other."""

    starts: list[float]
    wholes: list[float]

    @property
    def first(self) -> float:
        return self.starts[0]

    @property
    def later(self) -> float:
        """The median of all starts but the first."""
        return statistics.median(self.starts[1:])

    @property
    def later_whole(self) -> float:
        return statistics.median(self.wholes[1:])


async def measure(exports: int = 8) -> StartTimes:
    """Export a small model `exports` times in one session. Raises RuntimeError where that fails."""
    starts: list[float] = []
    wholes: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.py"
        file.write_text(MODEL)
        request = ExportRequest(f"{file}:Model", ModelInputs(inputs="(torch.randn(2, 8),)"), targets=())
        session = Session(Path(sys.executable))
        try:
            for _ in range(exports):
                begun = time.perf_counter()
                seen: list[float] = []

                def note(progress: Progress, begun: float = begun, seen: list[float] = seen) -> None:
                    if progress.stage == "import":
                        seen.append(time.perf_counter() - begun)

                report = await session.run(request, note)
                if report.failure is not None:
                    raise RuntimeError(f"the export failed: {report.failure.message}")
                starts.append(seen[0])
                wholes.append(time.perf_counter() - begun)
        finally:
            await session.close()
    return StartTimes(starts, wholes)
