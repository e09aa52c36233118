"""One warm prover for all rules' examples."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from exportlens.proof.example import Prover


@pytest.fixture(scope="session")
def prover() -> Iterator[Prover]:
    """A process with torch imported, in the interpreter that runs the tests."""
    with Prover(Path(sys.executable)) as running:
        yield running
