"""The generated pages say what the rules say now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from exportlens.rule import registry
from exportlens.rule_page import page

ROOT = Path(__file__).resolve().parents[2]


def test_pages_are_current() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/generate_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_every_page_has_the_headings() -> None:
    wanted = [
        "## What it does",
        "## Why it matters",
        "## Example",
        "## Use instead",
        "## Outcome",
        "## References",
    ]
    for rule in registry():
        text = page(rule)
        places = [text.find(heading) for heading in wanted]
        assert -1 not in places, (rule.code, places)
        assert places == sorted(places), rule.code


def test_codes_and_names_are_well_formed() -> None:
    names = [rule.name for rule in registry()]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() and "_" not in name for name in names)
    assert len(names) >= 45
