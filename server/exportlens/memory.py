"""What each entry point of a document led to, kept for as long as nothing that it can reach has changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from exportlens.inference.scopes import ModuleScope
from exportlens.source.document import Chunk

Result = TypeVar("Result")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


class Reach:
    """Which chunks of one document a chunk can come to by any name that stands in it, strings included.

    A superset of what interpretation follows, and quick to know: it asks for no values.
    """

    def __init__(self, scope: ModuleScope, identifiers: dict[str, frozenset[str]]) -> None:
        self._scope = scope
        self._identifiers = identifiers
        self._order = {placed.chunk: index for index, placed in enumerate(scope.document.placed)}
        self._direct: dict[Chunk, frozenset[Chunk]] = {}

    def of(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """All chunks that `chunks` can come to, themselves included, in the order of the document."""
        reached = set(chunks)
        reached.update(chunk for chunk, _ in self._scope.star_imports)
        waiting = list(reached)
        while waiting:
            for chunk in self._from(waiting.pop()):
                if chunk not in reached:
                    reached.add(chunk)
                    waiting.append(chunk)
        return tuple(sorted(reached, key=lambda chunk: self._order.get(chunk, -1)))

    def everything(self) -> tuple[Chunk, ...]:
        """All chunks of the document."""
        return tuple(self._order)

    def _from(self, chunk: Chunk) -> frozenset[Chunk]:
        known = self._direct.get(chunk)
        if known is None:
            bindings = self._scope.bindings
            names = self._names(chunk)
            known = frozenset(target for name in names & bindings.keys() for target, _ in bindings[name])
            self._direct[chunk] = known
        return known

    def _names(self, chunk: Chunk) -> frozenset[str]:
        names = self._identifiers.get(chunk.key)
        if names is None:
            names = self._identifiers[chunk.key] = frozenset(_IDENTIFIER.findall(chunk.text))
        return names


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Result]):
    reached: tuple[Chunk, ...]
    result: Result


class Memory(Generic[Result]):
    """Results by document and entry point."""

    def __init__(self) -> None:
        self._kept: dict[Path, dict[Hashable, _Kept[Result]]] = {}
        self.identifiers: dict[str, frozenset[str]] = {}

    def recall(
        self, path: Path, entry: Hashable, reached: tuple[Chunk, ...], compute: Callable[[], Result]
    ) -> Result:
        """The result kept for `entry` if it can reach the very same chunks as then, else what `compute`
        gives.
        """
        kept = self._kept.setdefault(path, {})
        known = kept.get(entry)
        if known is None or known.reached != reached:
            known = kept[entry] = _Kept(reached, compute())
        return known.result

    def changed(self, path: Path) -> None:
        """The text of `path` changed: what other documents led to may no longer hold."""
        for other in [other for other in self._kept if other != path]:
            del self._kept[other]
        if len(self.identifiers) > 20_000:
            self.identifiers.clear()

    def keep_only(self, path: Path, entries: Iterable[Hashable]) -> None:
        """Forget entry points that the document no longer has."""
        wanted = set(entries)
        kept = self._kept.get(path, {})
        for entry in [entry for entry in kept if entry not in wanted]:
            del kept[entry]
