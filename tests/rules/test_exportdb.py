"""torch's own examples: none that exports carries an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from exportdb import Case, cases
from exportlens.finding import Severity
from exportlens.outcome import Mode
from exportlens.proof.example import Prover

from tests.rules.checking import findings


@pytest.fixture(scope="module")
def exportdb(prover: Prover) -> list[Case]:
    return list(cases(prover))


def test_all_examples_are_found(exportdb: list[Case]) -> None:
    assert len(exportdb) == 36


def test_no_error_where_torch_exports(exportdb: list[Case]) -> None:
    wrong = [
        (case.name, mode.value, finding.code, finding.message)
        for case in exportdb
        for mode in Mode
        if case.proofs[mode].result == "ok"
        for finding in findings(case.text, modes=(mode,))
        if finding.severity is Severity.ERROR
    ]
    assert wrong == []


def test_torch_does_with_them_what_it_says(exportdb: list[Case]) -> None:
    """The examples really ran: all export in both modes but those that torch lists as not supported."""
    failing = {case.name for case in exportdb if {proof.result for proof in case.proofs.values()} != {"ok"}}
    listed = {case.name for case in exportdb if "NOT_SUPPORTED_YET" in case.text}
    assert failing <= listed
