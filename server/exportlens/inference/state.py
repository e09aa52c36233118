"""State: every write that the interpreter makes is journalled, so that the arms of a branch can be tried and joined.

Local variables, attributes of objects and the items of containers all live in dicts or slots; a write notes the old value.
Rolling back to a mark and re-applying joined changes is all that branches, loops and early returns need.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from exportlens.inference.lattice import alike, join
from exportlens.inference.values import Sequence, Value

MISSING: Any = object()

# What changed between two marks: (id of the container, key) -> (container, key, value now).
Changes = dict[tuple[int, Any], tuple[Any, Any, Any]]


class Locals(dict[str, Value]):
    """The local variables of an activation: writes to them are no change of the heap."""

    __slots__ = ()


class Journal:
    """An undo log over dicts (by item) and objects (by slot)."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any]] = []

    def mark(self) -> int:
        return len(self._entries)

    def write(self, container: Any, key: Any, value: Any) -> None:
        """Set `container[key]` (dict) or `container.key` (any other object), remembering what was there."""
        if isinstance(container, dict):
            self._entries.append((container, key, container.get(key, MISSING)))
            container[key] = value
        else:
            self._entries.append((container, key, getattr(container, key)))
            setattr(container, key, value)

    def remove(self, container: dict[Any, Any], key: Any) -> None:
        if key in container:
            self._entries.append((container, key, container.pop(key)))

    def changes_since(self, mark: int) -> Changes:
        """The present value of everything written since `mark`."""
        found: Changes = {}
        for container, key, _ in self._entries[mark:]:
            found[id(container), key] = (container, key, _read(container, key))
        return found

    def written_since(self, mark: int) -> set[int]:
        """The ids of the containers, other than local variables, that were written since `mark`."""
        return {id(container) for container, _, _ in self._entries[mark:] if type(container) is not Locals}

    def roll_back(self, mark: int) -> None:
        entries = self._entries
        while len(entries) > mark:
            container, key, old = entries.pop()
            if not isinstance(container, dict):
                setattr(container, key, old)
            elif old is MISSING:
                container.pop(key, None)
            else:
                container[key] = old

    def apply(self, paths: Iterable[Changes]) -> None:
        """Make the present state the join of the states that `paths` lead to (each relative to now)."""
        paths = list(paths)
        if len(paths) == 1:
            for container, key, value in paths[0].values():
                self._set(container, key, value)
            return
        slots: dict[tuple[int, Any], tuple[Any, Any]] = {}
        for path in paths:
            for slot, (container, key, _) in path.items():
                slots.setdefault(slot, (container, key))
        blurred: list[tuple[Sequence, list[Any]]] = []
        for slot, (container, key) in slots.items():
            before = _read(container, key)
            values = [path[slot][2] if slot in path else before for path in paths]
            joined = _join_all(values)
            self._set(container, key, joined)
            if joined is None and key == "items" and isinstance(container, Sequence):
                blurred.append((container, values))
        for sequence, lists in blurred:
            self._cover(sequence, lists)

    def _cover(self, sequence: Sequence, lists: list[list[Value] | None]) -> None:
        """Keep what the items have in common of a list that has another number of them on each path.

        Where they are of several kinds, which of them is at an index hangs on the path.
        """
        items = [item for found in lists for item in found or ()]
        known = [] if sequence.element is None else [sequence.element]
        cover = _join_all([*known, *items])
        if isinstance(cover, Value):
            self.write(sequence, "element", alike(cover))
        if all(lists):
            self.write(sequence, "filled", True)

    def _set(self, container: Any, key: Any, value: Any) -> None:
        if value is MISSING:
            self.remove(container, key)
        else:
            self.write(container, key, value)


def _read(container: Any, key: Any) -> Any:
    return container.get(key, MISSING) if isinstance(container, dict) else getattr(container, key)


def _join_all(values: list[Any]) -> Any:
    present = [value for value in values if value is not MISSING]
    if not present:
        return MISSING
    # A name that only some paths bind is taken to have been bound: the program would stop otherwise.
    result = present[0]
    for value in present[1:]:
        result = _join_slot(result, value)
    return result


def _join_slot(left: Any, right: Any) -> Any:
    if left is right:
        return left
    if isinstance(left, Value) and isinstance(right, Value):
        return join(left, right)
    if isinstance(left, list) and isinstance(right, list):
        # The items of one sequence, as two paths left them.
        if len(left) == len(right):
            return [join(a, b) for a, b in zip(left, right, strict=True)]
        return None
    if isinstance(left, dict) and isinstance(right, dict):
        return {
            key: join(left[key], right[key])
            if key in left and key in right
            else left.get(key, right.get(key))
            for key in {**left, **right}
        }
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        return None
    if isinstance(left, Value) or isinstance(right, Value):
        return left if isinstance(left, Value) else right
    # Fingerprints and flags: what differs between paths is not known.
    return left if left == right else True if isinstance(left, bool) else None
