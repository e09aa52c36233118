"""The JSON of an export has one form, whatever the model does."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from exportlens.cli.export import command
from exportlens.export.report import COULD_NOT_RUN, KINDS, Report
from exportlens.export.request import ExportRequest, ModelInputs
from exportlens.export.session import Progress, Session
from exportlens.export.text import render_report

from .conftest import MODELS, Runner

Shape = Mapping[str, Any]
NUMBER = (int, float)
FAILURE = {"stage": str, "kind": KINDS, "message": str}
CASE = {"case": str, "status": ("equal", "different", "failed", "skipped"), "message": str, "note": str}
COMPARISON = {
    "equal": bool,
    "max_abs_error": (*NUMBER, None),
    "max_rel_error": (*NUMBER, None),
    "cases": [CASE],
}
PLACE = {"row": int, "column": int}
FINDING = {
    "code": str,
    "name": str,
    "severity": ("error", "warning", "information"),
    "message": str,
    "filename": str,
    "location": PLACE,
    "end_location": PLACE,
    "fix": (dict, None),
    "url": (str, None),
}
TARGET = {
    "name": str,
    "status": ("ok", "failed", "unavailable", "skipped"),
    "stage": (str, None),
    "seconds": (*NUMBER, None),
    "artifact": (str, None),
    "bytes": (int, None),
    "max_abs_error": (*NUMBER, None),
    "latency": (dict, None),
    "delegated": (int, None),
    "left": [dict],
    "failure": (FAILURE, None),
    "peak_memory": (int, None),
}
REPORT = {
    "model": str,
    "torch": (str, None),
    "mode": (str, None),
    "ok": bool,
    "failure": (FAILURE, None),
    "findings": [FINDING],
    "comparison": (COMPARISON, None),
    "targets": [TARGET],
    "modes": [{"mode": ("strict", "non-strict"), "ok": bool, "failure": (FAILURE, None), "histogram": dict}],
}


def fits(value: Any, shape: Any, place: str = "report") -> None:
    """Hold a value to a shape: a type, a constant, alternatives, a list of one shape, or an object's fields."""
    if isinstance(shape, Mapping):
        assert isinstance(value, dict), (place, value)
        for key, inner in shape.items():
            assert key in value, f"{place} lacks {key}"
            fits(value[key], inner, f"{place}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), (place, value)
        for index, item in enumerate(value):
            fits(item, shape[0], f"{place}[{index}]")
    elif isinstance(shape, tuple):
        for inner in shape:
            try:
                return fits(value, inner, place)
            except AssertionError:
                continue
        raise AssertionError((place, value))
    elif isinstance(shape, type):
        assert isinstance(value, shape), (place, value)
    else:
        assert value == shape, (place, value)
    return None


def checked(report: Report) -> dict[str, Any]:
    """The report as JSON text says it, held to the shape and to what its words promise."""
    found: dict[str, Any] = json.loads(json.dumps(report.to_json(), allow_nan=False))
    fits(found, REPORT)
    failures = [found["failure"], *(target["failure"] for target in found["targets"])]
    assert found["ok"] == (not any(failures))
    return found


X = "(torch.randn(2, 8),)"
ONE_REQUEST = [
    ("import", "traps.py:Missing", {}),
    ("construct", "unruly.py:Sound", {"init": "depth=3"}),
    ("inputs", "unruly.py:Sound", {"inputs": "(unknown,)"}),
    ("eager", "traps.py:EagerFails", {}),
    ("export", "traps.py:DataDependent", {}),
    ("run", "unruly.py:AssertsWhileTraced", {}),
    ("mismatch", "traps.py:FrozenCounter", {}),
    ("timeout", "unruly.py:Hangs", {"timeout": 2}),
    ("memory", "unruly.py:Devours", {"memory_limit": 1 << 30}),
    ("crash", "unruly.py:Aborts", {}),
]


@pytest.mark.parametrize(("kind", "model", "words"), ONE_REQUEST, ids=[row[0] for row in ONE_REQUEST])
def test_the_form_holds_for_each_kind(worker: Runner, kind: str, model: str, words: Shape) -> None:
    asked = {"inputs": X, "mode": "non-strict", "targets": ("torch",), **words}
    report = worker.export(model, **asked)
    found = checked(report)
    assert not found["ok"] and found["failure"]["kind"] == kind
    assert report.exit_code == (2 if kind in COULD_NOT_RUN else 1)
    assert found["failure"]["message"] and "Traceback" not in found["failure"]["message"]


def test_the_form_holds_where_a_target_fails(worker: Runner, tmp_path: Path) -> None:
    """`lower`: the artifact cannot be written where it was asked for. `unavailable`: a target that is not here."""
    (tmp_path / "taken").write_text("a file, no folder")
    report = worker.export(
        "unruly.py:Sound",
        targets=("torch", "tensorrt"),
        output=tmp_path / "taken" / "out",
        mode="non-strict",
    )
    found = checked(report)
    assert found["failure"] is None and not found["ok"]
    assert [target["failure"]["kind"] for target in found["targets"]] == ["lower", "unavailable"]


def test_the_form_holds_for_a_cancelled_run(worker: Runner) -> None:
    def listen(progress: Progress) -> None:
        if progress.stage == "eager":
            worker.session.cancel()

    request = ExportRequest(f"{MODELS / 'unruly.py'}:Hangs", ModelInputs(inputs=X))
    found = checked(worker.run(worker.session.run(request, listen)))
    assert found["failure"]["kind"] == "cancelled"


def test_a_target_that_was_cancelled_is_not_called_failed(worker: Runner) -> None:
    def listen(progress: Progress) -> None:
        if progress.stage == "lower":
            worker.session.cancel()

    given = ModelInputs(inputs=X)
    request = ExportRequest(f"{MODELS / 'unruly.py'}:Sound", given, targets=("aoti-cpu",))
    report = worker.run(worker.session.run(request, listen))
    found = checked(report)
    assert found["failure"]["kind"] == "cancelled"
    assert [row.split()[:2] for row in render_report(report).splitlines() if "aoti-cpu " in row] == [
        ["aoti-cpu", "cancelled"]
    ]


def test_the_form_holds_without_an_interpreter() -> None:
    request = ExportRequest(f"{MODELS / 'unruly.py'}:Sound", ModelInputs(inputs=X))
    found = checked(asyncio.run(Session(Path("/nowhere/python")).run(request)))
    assert found["failure"]["kind"] == "unavailable"


TIED = """import torch

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

if __name__ == "__main__":
    rows = torch.export.Dim("rows", max=64)
    others = torch.export.Dim("others", max=64)
    example = (torch.randn(3, 4), torch.randn(3, 4))
    torch.export.export(Net(), example, dynamic_shapes={"x": {0: rows}, "y": {0: others}})
"""
WRITES = """import torch

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        y.data.mul_(2)
        return y

if __name__ == "__main__":
    torch.export.export(Net(), (torch.randn(3, 4),))
"""


def test_the_command_prints_it_whole_and_alone() -> None:
    """A model that prints the protocol's own words; the failing line carries the fix of the rule that knows it."""
    words = [f"{MODELS / 'unruly.py'}:PrintsAndBranches", "--inputs", X, "--python", sys.executable]
    result = CliRunner().invoke(command, [*words, "--output-format", "json"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    fits(found, REPORT)
    [finding] = found["findings"]
    assert finding["code"] == "EXP001" and finding["data"]["rule"] == "EXL101"
    assert "torch.cond" in finding["fix"]["edits"][0]["content"]


@pytest.mark.parametrize(
    ("text", "mode", "code", "rule", "place"),
    [
        (TIED, "strict", "EXP002", "EXL418", 5),  # no rule finds it: torch's own suggestion becomes the fix
        (
            WRITES,
            "non-strict",
            "EXP001",
            "EXL202",
            4,
        ),  # torch has no line for it: the model's only cause is taken
    ],
)
def test_a_failure_carries_the_fix_of_whoever_knows_its_cause(
    tmp_path: Path, text: str, mode: str, code: str, rule: str, place: int
) -> None:
    (tmp_path / "net.py").write_text(text)
    (tmp_path / "pyproject.toml").touch()
    words = [f"{tmp_path / 'net.py'}:Net", "--python", sys.executable, "--mode", mode]
    result = CliRunner().invoke(command, [*words, "--output-format", "json"])
    [finding] = json.loads(result.stdout)["findings"]
    assert (finding["code"], finding["data"]["rule"], finding["location"]["row"]) == (code, rule, place)
    assert finding["fix"]["edits"] and f"Fix by {rule}" in "".join(finding["notes"])
