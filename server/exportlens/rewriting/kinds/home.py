"""Where a value of a function is, and what is known of its names at one place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Home:
    """Where a value is: with what the calls `made` on the host, or `elsewhere`, where the tensors at the paths `like` are. Both
    are said of what is one or the other, and neither of a number."""

    made: frozenset[ast.Call] = frozenset()
    like: tuple[str, ...] = ()
    elsewhere: bool = False
    items: tuple[Home, ...] | None = None
    keys: tuple[str, ...] = ()
    # Of a named tuple.
    fields: tuple[str, ...] = ()

    @property
    def flat(self) -> Home:
        """The same, of the value as one."""
        return self if self.items is None else either(each.flat for each in self.items)

    @property
    def certainly_elsewhere(self) -> bool:
        return bool(self.like) and not self.made


NUMBER = Home()
ELSEWHERE = Home(elsewhere=True)
# What a function gives that calls itself once more than it is followed: what its other ways give.
AGAIN = Home(keys=("again",))


def either(homes: Iterable[Home]) -> Home:
    """Where a value is that is one of several."""
    each = [one for one in homes if one is not AGAIN]
    alike = len({len(one.items) if one.items is not None else None for one in each}) == 1
    if each and alike and each[0].items is not None and len({one.keys for one in each}) == 1:
        columns = zip(*(one.items or () for one in each), strict=True)
        return replace(each[0], items=tuple(map(either, columns)))
    flat = [one.flat for one in each]
    return Home(
        frozenset(call for one in flat for call in one.made),
        tuple(dict.fromkeys(path for one in flat for path in one.like)),
        any(one.elsewhere for one in flat),
    )


def computed(homes: Iterable[Home]) -> Home:
    """Where a value is that is computed of several: what the host made goes along with what is elsewhere."""
    flat = [one.flat for one in homes]
    settled = [one for one in flat if one.certainly_elsewhere]
    return either(settled or flat)


@dataclass
class Names:
    """What is known at one place: the homes of names and paths, which of them certainly are bound, and local functions."""

    homes: dict[str, Home] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    # Whether they are those of a function inside, whose own names mean nothing around it.
    inside: bool = False

    def copy(self) -> Names:
        return Names(dict(self.homes), set(self.certain), dict(self.functions), self.inside)

    def bind(self, path: str, home: Home) -> None:
        if home.elsewhere and home.items is None and path not in home.like and not self.inside:
            home = replace(home, like=(*home.like, path))
        self.homes[path] = home
        self.certain.add(path)

    def take(self, ways: Sequence[Names]) -> None:
        """Become what is known behind `ways`, one of which was taken."""
        if not ways:
            return
        paths = dict.fromkeys(path for each in ways for path in each.homes)
        self.homes = {path: either(each.homes[path] for each in ways if path in each.homes) for path in paths}
        self.certain = set.intersection(*(each.certain for each in ways))
        for each in ways:
            self.functions |= each.functions
