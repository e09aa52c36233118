"""Guessed inputs changed by what eager says of them: another width, side, number of channels, dtype or rank."""

from __future__ import annotations

import heapq
import itertools
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch

from exportlens.export.worker.changing import Expression, changes
from exportlens.export.worker.stages import StageError

FITTED = ", fitted to what eager said"
LIKELY_TRIES = 90
MOST_TRIES = 130
"""The last of them are for sizes of 1."""
MOST_SECONDS = 30.0
DEEPEST = 8
T = TypeVar("T")


@dataclass
class Refusal:
    """One way tried to make and to call a model, why it failed, and how many layers it got through."""

    words: dict[str, Any]
    error: StageError
    progress: int


class Calls:
    """How many calls of Modules have ended well since the last `restart`: how far a model got before it failed."""

    def __init__(self) -> None:
        self.ended = 0

    def restart(self) -> None:
        self.ended = 0

    def count(self, *_: Any) -> None:
        self.ended += 1


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Counts the calls of Modules within the block."""
    calls = Calls()
    handle = torch.nn.modules.module.register_module_forward_hook(calls.count)
    try:
        yield calls
    finally:
        handle.remove()


def wider(words: dict[str, Any]) -> dict[str, Any]:
    """The proposal with widths of 64 in place of 8, in what the model is made with and in its inputs: groups, heads and
    halvings divide it.
    """
    changed = {key: re.sub(r"(?<![\w.])8(?![\w.])", "64", words.get(key) or "") for key in ("init", "inputs")}
    return {**words, **{key: text for key, text in changed.items() if text}}


class Fitter(Generic[T]):
    """Looks for inputs that a model takes, from guesses that it refuses.

    `tried` gives what is prepared, or the refusal. The next to be tried is a change of what got furthest.
    """

    def __init__(self, tried: Callable[[dict[str, Any]], T | Refusal]) -> None:
        self._try = tried
        self._order = itertools.count()
        self._queue: list[tuple[int, int, int, Refusal]] = []
        self._seen: set[tuple[str, str]] = set()
        self._unlikely: list[tuple[int, dict[str, Any], Refusal]] = []
        self._furthest = 0
        self._tries, self._most = 0, LIKELY_TRIES
        self._started = time.monotonic()

    def fit(self, guesses: list[Refusal]) -> T | None:
        """What the first change that fits gives; None where none does within a number of tries and of seconds."""
        for guess in guesses:
            if self._new(guess.words):
                self._push(guess, 0)
        while self._queue and self._has_time():
            depth, _, refusal = heapq.heappop(self._queue)[1:]
            found = self._around(refusal, depth)
            if found is not None:
                return found
        self._most = MOST_TRIES
        for _, words, refusal in sorted(self._unlikely, key=lambda each: -each[0]):
            found = self._once(words, refusal, DEEPEST) if self._has_time() else None
            if found is not None:
                return found
        return None

    def _around(self, refusal: Refusal, depth: int) -> T | None:
        """What a change of this guess gives, where one fits; those that had an effect are changed in their turn."""
        for words, likely in self._changed(refusal):
            if not self._has_time():
                return None
            if not self._new(words):
                continue
            if not likely:
                self._unlikely.append((refusal.progress, words, refusal))
                continue
            before = self._furthest
            found = self._once(words, refusal, depth)
            if found is not None:
                return found
            if self._furthest > before:
                self._push(refusal, depth)  # the rest of its changes come after what got further
                return None
        return None

    def _once(self, words: dict[str, Any], refusal: Refusal, depth: int) -> T | None:
        self._tries += 1
        found = self._try(words)
        if not isinstance(found, Refusal):
            return found
        if found.error.kind == "eager" and depth < DEEPEST and _differ(found, refusal):
            self._push(found, depth + 1)
        return None

    def _has_time(self) -> bool:
        return self._tries < self._most and time.monotonic() - self._started < MOST_SECONDS

    def _push(self, refusal: Refusal, depth: int) -> None:
        self._furthest = max(self._furthest, refusal.progress)
        heapq.heappush(self._queue, (-refusal.progress, depth, next(self._order), refusal))

    def _new(self, words: dict[str, Any]) -> bool:
        key = (str(words.get("init")), f"{words.get('inputs')} {words.get('kwargs')}")
        known = key in self._seen
        self._seen.add(key)
        return not known

    def _changed(self, refusal: Refusal) -> Iterator[tuple[dict[str, Any], bool]]:
        """The proposal with other inputs, and whether they are likely: a size of 1 is taken as fixed by torch. Where dims
        were made dynamic, there are as many as before.
        """
        given, error = [refusal.words.get(key) for key in ("inputs", "kwargs")], refusal.error.error
        if not any(given) or error is None:
            return
        expression = Expression(given[0] or "()", given[1] or "{}")
        source = str(refusal.words["source"])
        source = source if source.endswith(FITTED) else source + FITTED
        for draws in changes(f"{type(error).__name__}: {error}", expression.draws):
            ranks = [len(draw.sizes) for draw in draws]
            if refusal.words.get("dynamic_shapes") and ranks != [len(d.sizes) for d in expression.draws]:
                continue
            pairs = zip(draws, expression.draws, strict=True)
            likely = not any(new.fixed and not old.fixed for new, old in pairs)
            changed = zip(("inputs", "kwargs"), given, expression.with_draws(draws), strict=True)
            words = {key: new for key, old, new in changed if old}
            yield {**refusal.words, **words, "source": source}, likely


def _differ(one: Refusal, other: Refusal) -> bool:
    """Whether a change had an effect: another failure, or the same one elsewhere."""
    return (one.progress, one.error.message) != (other.progress, other.error.message)
