"""Which pairs of cases/ torch has exported in both modes, as texts: `python -m tests.rewriting.exported` records all of them, where
`make pairs` has passed."""

from __future__ import annotations

from pathlib import Path

from tests import records

RECORD = Path(__file__).with_name("exported.json")


def fingerprint(case: Path) -> str:
    """Of the pair's two texts and inputs."""
    return records.fingerprint(case.read_text(encoding="utf-8"))


def record(cases: list[Path]) -> None:
    records.write(RECORD, {case.stem: fingerprint(case) for case in cases})


if __name__ == "__main__":
    from tests.rewriting.test_pairs import CASES

    record(CASES)
