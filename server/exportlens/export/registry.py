"""The targets that exist, by entry point; their classes are looked at without importing what they need."""

from __future__ import annotations

import importlib
import importlib.metadata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

GROUP = "exportlens.targets"


@dataclass(frozen=True, slots=True)
class TargetPlace:
    """Where a target's class stands: `entry` is `module:Class`, `file` its path for interpreters without
    us.
    """

    name: str
    entry: str
    file: str
    purpose: str

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "entry": self.entry, "file": self.file}


@lru_cache(maxsize=1)
def known_targets() -> dict[str, TargetPlace]:
    """All targets by name, ours and those of installed packages, in the order in which they are shown."""
    found: dict[str, TargetPlace] = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        module_name, _, attribute = point.value.partition(":")
        module = importlib.import_module(module_name)
        target = getattr(module, attribute)
        file = str(Path(module.__file__ or "").resolve())
        found[point.name] = TargetPlace(point.name, f"{module_name}:{attribute}", file, target.purpose)
    return dict(sorted(found.items(), key=lambda item: (item[0] != "torch", item[0])))


def choose(names: tuple[str, ...]) -> list[TargetPlace]:
    """The targets of these names; `all` is every one. Raises ValueError on a name that is none."""
    places = known_targets()
    if "all" in names:
        return list(places.values())
    for name in names:
        if name not in places:
            raise ValueError(f"no such target: {name}; known: {', '.join(places)}")
    return [places[name] for name in dict.fromkeys(names)]
