"""torch's own messages, as this torch really gives them, in words for people."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from exportlens.export.plain_words import meaning
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.session import Session

MODELS = """import sys

import torch


class Pair:
    def __init__(self, x):
        self.x = x


class Branch(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Wrapped(torch.nn.Module):
    def forward(self, x):
        return Pair(x)


class Bridge(torch.nn.Module):
    def forward(self, x):
        return torch.tensor(x.numpy().sum())


class Broken(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(5)


class Size(torch.nn.Module):
    def forward(self, x):
        return x + sys.getsizeof([])
"""
DECIDES = "Python would have to decide something by the values of a tensor"
CLASS = "an input or output is an object of a class that torch.export does not know"
EXPECTED = {
    ("Branch", "strict"): DECIDES,
    ("Branch", "non-strict"): DECIDES,
    ("Wrapped", "strict"): CLASS,
    ("Wrapped", "non-strict"): CLASS,
    ("Bridge", "non-strict"): "NumPy cannot take part",
    # What fails in plain PyTorch says best itself what is wrong, and what is not known is not guessed.
    ("Broken", "non-strict"): None,
    ("Size", "strict"): None,
}


def test_what_a_failure_comes_to(tmp_path: Path) -> None:
    file = tmp_path / "models.py"
    file.write_text(MODELS, encoding="utf-8")

    async def told() -> dict[tuple[str, str], str | None]:
        session = Session(Path(sys.executable))
        inputs = ModelInputs(inputs="(torch.randn(2, 21),)")
        found = {}
        try:
            for name, mode in EXPECTED:
                request = ExportRequest(f"{file}:{name}", given=inputs, mode=mode, targets=())
                report = await session.run(request)
                assert report.failure is not None, (name, mode)
                found[name, mode] = meaning(report)
        finally:
            await session.close()
        return found

    for case, words in asyncio.run(told()).items():
        expected = EXPECTED[case]
        assert words == expected or (words and expected and words.startswith(expected)), (case, words)
