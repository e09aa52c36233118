"""torch's own messages, as this torch really gives them, in words for people."""

from __future__ import annotations

from pathlib import Path

import click
from exportlens.export.plain_words import meaning
from exportlens.export.report import Failure, ModeReport, Report, TargetReport
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.text import render_report

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


def test_a_report_that_a_target_spoils_says_so_in_its_last_line() -> None:
    report = Report("net.py:Net", torch="2.13.0")
    report.modes = [ModeReport("non-strict", ok=True, seconds=1.0)]
    report.targets = [TargetReport("torch", "ok"), TargetReport("onnxruntime-cpu", "unavailable")]
    last = click.unstyle(render_report(report)).splitlines()[-1]
    assert last == "not confirmed: it exports and equals eager, but onnxruntime-cpu cannot be used here"


def test_targets_that_nothing_came_to_have_no_table() -> None:
    report = Report("net.py:Net", torch="2.13.0", failure=Failure("export", "export", "no"))
    report.chosen = {
        "source": "the first layers",
        "inputs": "(x,)",
        "init": "dim=8",
        "dynamic_shapes": "{'x': None}",
    }
    report.targets = [TargetReport("torch"), TargetReport("aoti-cpu")]
    text = render_report(report)
    assert "not tried on torch, aoti-cpu: there is no program to lower" in text and "max error" not in text
    assert "made as Net(dim=8)" in text and "dynamic shapes: {'x': None}" in text
