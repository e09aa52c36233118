"""What was measured: per rule, example and torch version how a real export ended; shipped by the pack."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from exportlens.outcome import BAKED, FAILS, OK, WRONG, Outcome, Result

TABLE_NAME = "outcomes.json"
_SEVEREST_LAST = (OK, BAKED, WRONG, FAILS)
Rows = Mapping[str, tuple[str, str]]


@functools.cache
def table(package: str) -> Mapping[str, Rows]:
    """The table of a rule pack: "EXL101-1" -> {"2.13": (strict, non-strict)}; empty where it ships none."""
    try:
        text = importlib.resources.files(package).joinpath(TABLE_NAME).read_text(encoding="utf-8")
        outcomes: dict[str, Rows] = json.loads(text)["outcomes"]
    except (OSError, ValueError, KeyError, ModuleNotFoundError):
        return {}
    except TypeError:
        return {}  # a rule in a module of its own, which has no room for a table
    return outcomes


def measured(outcome: Outcome, examples: Iterable[Rows]) -> Outcome:
    """`outcome` with what was measured on its `examples`; where they differ, the mildest result counts."""
    versions: dict[str, tuple[Result | None, Result | None]] = {}
    for rows in examples:
        for version, (strict, non_strict) in rows.items():
            pair = (_result(strict, outcome.strict), _result(non_strict, outcome.non_strict))
            known = versions.get(version)
            versions[version] = (
                pair if known is None else (_milder(known[0], pair[0]), _milder(known[1], pair[1]))
            )
    return replace(outcome, measured=versions) if versions else outcome


def _result(word: str, stated: Result) -> Result | None:
    """The prover's word as a result; frozen and wrong look alike to it, so the rule's word decides."""
    if word == "differs":
        return BAKED if stated is BAKED else WRONG
    return {"fails": FAILS, "ok": OK}.get(word)


def _milder(one: Result | None, other: Result | None) -> Result | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=_SEVEREST_LAST.index)
