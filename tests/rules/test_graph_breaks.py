"""The table of torch's graph breaks is whole, and a failed export names the rules that know its kind."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from exportlens.counterpart import with_fixes
from exportlens.export.report import Report
from exportlens.finding import Finding, Position, Range, Severity
from exportlens.graph_breaks import graph_breaks, rules_of
from exportlens.outcome import Mode
from exportlens.proof.example import Prover
from exportlens.rule import registry

_TORCH = importlib.util.find_spec("torch")


def test_every_type_of_torchs_registry_has_a_row() -> None:
    assert _TORCH is not None and _TORCH.origin is not None
    file = Path(_TORCH.origin).with_name("_dynamo") / "graph_break_registry.json"
    theirs = {code: entries[0]["Gb_type"] for code, entries in json.loads(file.read_text()).items()}
    ours = {code: row.type for code, row in graph_breaks().items()}
    assert {code: kind for code, kind in theirs.items() if ours.get(code) != kind} == {}


def test_a_row_names_rules_that_there_are_or_says_why_none() -> None:
    codes = {rule.code for rule in registry()}
    for row in graph_breaks().values():
        assert set(row.rules) <= codes, row
        assert bool(row.rules) != bool(row.reason), row


# A rule for each way in which the table was filled; the first bad example of each stops strict tracing with a type.
_MEASURED = (
    "EXL101",
    "EXL212",
    "EXL307",
    "EXL315",
    "EXL328",
    "EXL330",
    "EXL407",
    "EXL430",
    "EXL511",
    "EXL603",
)


@pytest.mark.parametrize("code", _MEASURED)
def test_a_rules_example_breaks_as_the_table_says(prover: Prover, code: str) -> None:
    rule = next(rule for rule in registry() if rule.code == code)
    example = rule.examples[0]
    words = prover.prove(example.bad, example)[Mode.STRICT].detail
    kinds = [row for row in graph_breaks().values() if f"Unsupported: {row.type.strip()}" == words.strip()]
    assert any(code in row.rules for row in kinds), (words, kinds)


def test_a_failure_that_no_rule_found_names_the_rules_of_its_kind(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("x = 1\n")
    failure = Finding(
        "EXP001", "export-failed", Severity.ERROR, "torch.export fails here", file,
        Range(Position(0, 0), Position(0, 5)), data={"gb": "GB0109"},
    )  # fmt: skip
    report = Report(model=f"{file}:M", findings=[failure])
    [named] = with_fixes([], report, lambda failure: [])
    assert rules_of("GB0109") == ("EXL407",)
    assert "EXL407" in named.notes[-1] and named.data["rule"] == "EXL407"
