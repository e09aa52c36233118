"""torch's own messages, as this torch really gives them, in words for people."""

from __future__ import annotations

from pathlib import Path

from exportlens.export.plain_words import meaning
from exportlens.export.request import ExportRequest, ModelInputs

from .conftest import Runner

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


def test_what_a_failure_comes_to(worker: Runner, tmp_path: Path) -> None:
    file = tmp_path / "models.py"
    file.write_text(MODELS, encoding="utf-8")
    for (name, mode), expected in EXPECTED.items():
        given = ModelInputs(inputs="(torch.randn(2, 21),)")
        request = ExportRequest(f"{file}:{name}", given=given, mode=mode, targets=())
        report = worker.run(worker.session.run(request))
        assert report.failure is not None, (name, mode)
        words = meaning(report)
        told = words == expected or (words and expected and words.startswith(expected))
        assert told, (name, mode, words)
