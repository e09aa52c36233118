"""torch's own kinds of graph break: which rules know each, or why source code does not show it; shipped by the packs."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

TABLE_NAME = "graph_breaks.json"


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """One type of torch's registry (torch/_dynamo/graph_break_registry.json). Without rules, `reason` says why."""

    code: str
    type: str
    rules: tuple[str, ...] = ()
    reason: str = ""


@functools.cache
def graph_breaks() -> Mapping[str, GraphBreak]:
    """All known types by code ("GB0170"), from the tables that the installed rule packs ship."""
    return {
        each.code: each
        for entry in importlib.metadata.entry_points(group="exportlens.rules")
        for each in _rows(entry.module.partition(".")[0])
    }


def rules_of(code: str) -> tuple[str, ...]:
    """The codes of the rules that know the graph break `code`; empty where none does."""
    known = graph_breaks().get(code)
    return known.rules if known is not None else ()


def _rows(package: str) -> Iterator[GraphBreak]:
    try:
        text = importlib.resources.files(package).joinpath(TABLE_NAME).read_text(encoding="utf-8")
        table = json.loads(text)
        for code, row in table["types"].items():
            yield GraphBreak(
                code, row["type"], tuple(row.get("rules", ())), table["why"].get(row.get("why"), "")
            )
    except (OSError, ValueError, KeyError, ModuleNotFoundError):
        return
