"""The scorer itself: what counts as found, and what as a false alarm."""

from __future__ import annotations

import json
from pathlib import Path

from tests.real.corpus import Measured, Row, Sources, Text, half
from tests.real.score import Error, judge, kind, parse_findings, score

SOURCE = """\
import torch

class M(torch.nn.Module):
    def forward(self, x):
        y = torch.cat([
            x,
            x.data,
        ])
        if (
            y.sum() > 0
        ):
            return x
        return y

class Other(torch.nn.Module):
    def forward(self, x):
        return x
"""
SOUND = Measured("ok", "sound")


def fails(line: int) -> Measured:
    return Measured("fail", file="m.py", line=line, exception="RuntimeError")


def row(measured: Measured, name: str = "M", lines: tuple[int, int] = (3, 13)) -> Row:
    return Row("p==1", f"m.{name}", "m.py", name, lines, {"strict": measured, "non-strict": measured})


def judged(folder: Path, measured: Row, *errors: Error):  # type: ignore[no-untyped-def]
    (folder / "m.py").write_text(SOURCE)
    return judge(measured, "strict", list(errors), Sources(folder), folder)


def error(line: int, end: int | None = None, entry: tuple[str, ...] | None = None) -> Error:
    return Error("m.py", line, end or line, "EXL1", "message", entry)


def test_an_error_anywhere_in_the_blamed_statement_is_on_its_line(tmp_path: Path) -> None:
    assert judged(tmp_path, row(fails(7)), error(5)).on_line
    assert judged(tmp_path, row(fails(9)), error(10)).on_line
    assert judged(tmp_path, row(fails(10)), error(9, 11)).on_line


def test_an_error_in_the_body_of_the_blamed_branch_is_not(tmp_path: Path) -> None:
    item = judged(tmp_path, row(fails(9)), error(12))
    assert not item.on_line
    assert item.in_function


def test_an_error_in_another_class_is_no_false_alarm(tmp_path: Path) -> None:
    assert not judged(tmp_path, row(SOUND), error(17)).in_class
    assert judged(tmp_path, row(SOUND), error(12)).in_class


def test_entries_tell_whose_findings_they_are(tmp_path: Path) -> None:
    item = judged(tmp_path, row(SOUND, "Other", (15, 17)), error(9, entry=("m.py:M", "m.py:Other")))
    assert not item.in_class
    assert item.from_entry
    assert score([item], "strict").alarms_from_entry.part == 1  # type: ignore[union-attr]
    assert not judged(tmp_path, row(SOUND, "Other", (15, 17)), error(9, entry=("m.py:M",))).from_entry


def test_findings_are_read_as_the_command_prints_them(tmp_path: Path) -> None:
    place = {"filename": f"{tmp_path}/m.py", "location": {"row": 9, "column": 1}, "end_location": {"row": 11}}
    found = {"code": "EXL101", "message": "m", "severity": "error", "entry": [f"{tmp_path}/m.py:M"], **place}
    errors = parse_findings(json.dumps([found, {**found, "severity": "warning"}]), tmp_path)
    assert errors == [Error("m.py", 9, 11, "EXL101", "m", ("m.py:M",))]


def test_kinds_come_from_the_text_of_the_statement() -> None:
    text = Text(SOURCE)
    assert kind(text, fails(7)) == ".data"
    assert kind(text, fails(9)) == "control flow"
    assert kind(text, Measured("fail")) == "no line named"


def test_each_package_is_in_one_half_however_it_is_spelled() -> None:
    assert half("efficientnet_pytorch") == half("Efficientnet-PyTorch")
    assert {half(name) for name in ("flair", "fastai", "norse", "piqa", "lpips", "tsai")} == {
        "dev",
        "held-out",
    }
