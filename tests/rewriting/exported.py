"""Which pairs of cases/ torch has exported in both modes, as texts: `python -m tests.rewriting.exported` records all of them.

The torch of the tests is pinned: a pair whose text has not changed since exports as it did then. `make pairs` exports all, and
records them when that has passed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch

RECORD = Path(__file__).with_name("exported.json")


def fingerprint(case: Path) -> str:
    """Of the pair's two texts and inputs, and of the torch that exports them."""
    return hashlib.sha256(
        f"{torch.__version__.partition('+')[0]}\n{case.read_text(encoding='utf-8')}".encode()
    ).hexdigest()[:16]


def recorded() -> dict[str, str]:
    """The fingerprints of the pairs that were exported in both modes, by their names."""
    known: dict[str, str] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return known


def record(cases: list[Path]) -> None:
    text = json.dumps({case.stem: fingerprint(case) for case in cases}, indent=0, sort_keys=True)
    RECORD.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    from tests.rewriting.test_pairs import CASES

    record(CASES)
