"""Dispatching: places go to the rules that want them, and one report is kept for each node and rule."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from exportlens.inference.places import Call, ExportCall, Place, Site, Trail
from exportlens.inference.scopes import ModuleScope
from exportlens.open_options import Ways, asks_for_an_open_option
from exportlens.outcome import FAILS, OK
from exportlens.rule import Report, Rule

# As many ways to a place as are looked at before something is put there.
_MOST_WAYS = 8


@dataclass(slots=True)
class Known:
    """One thing found: the report that says most, and the entry points that reach it, those that certainly do apart. It is
    `supposed` where only a run finds it that takes arguments for tensors without evidence."""

    report: Report
    certain: bool
    entries: set[str] = field(default_factory=set)
    surely: set[str] = field(default_factory=set)
    ways: dict[tuple[int, ...], Trail] = field(default_factory=dict)
    supposed: bool = False
    by_entry: dict[str, Report] = field(default_factory=dict)

    def take_entry(self, entry: str, report: Report) -> None:
        """Keep what is found from one more entry point, where the same may have been given more."""
        if len(self.by_entry) < _MOST_WAYS:
            self.by_entry.setdefault(entry, report)

    def elsewhere(self) -> tuple[Report, ...]:
        """What other entry points than that of the report found; none where they may be too many to know all."""
        if len(self.by_entry) == _MOST_WAYS:
            return ()
        return tuple(
            each for each in self.by_entry.values() if each.place.site.entry != self.report.place.site.entry
        )

    def take_ways(self, ways: Mapping[tuple[int, ...], Trail]) -> None:
        for key, trail in ways.items():
            if len(self.ways) < _MOST_WAYS:
                self.ways.setdefault(key, trail)


class RuleIndex:
    """Which rules look at which places and calls; kept as long as the rules are the same."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._by_place: dict[type[Place], tuple[Rule, ...]] = {}
        self._by_name: dict[str, tuple[Rule, ...]] = {}
        self._of_any: list[int] = []
        self._of_name: dict[str, list[int]] = {}
        self._of_prefix: list[tuple[str, int]] = []
        for at, rule in enumerate(self.rules):
            if Call in rule.places:
                self._add_callees(at, rule)

    def _add_callees(self, at: int, rule: Rule) -> None:
        if not rule.callees:
            self._of_any.append(at)
        for pattern in rule.callees:
            if pattern.endswith(".*"):
                self._of_prefix.append((pattern[:-1], at))
            else:
                self._of_name.setdefault(pattern, []).append(at)

    def for_place(self, place: type[Place]) -> tuple[Rule, ...]:
        rules = self._by_place.get(place)
        if rules is None:
            rules = self._by_place[place] = tuple(rule for rule in self.rules if place in rule.places)
        return rules

    def for_call(self, name: str) -> tuple[Rule, ...]:
        rules = self._by_name.get(name)
        if rules is None:
            found = {*self._of_any, *self._of_name.get(name, ())}
            found.update(at for prefix, at in self._of_prefix if name.startswith(prefix))
            rules = self._by_name[name] = tuple(self.rules[at] for at in sorted(found))
        return rules


class Dispatcher:
    """Hands places to the rules that want them and keeps one report per node and rule."""

    def __init__(self, index: RuleIndex) -> None:
        self.index = index
        self.found: dict[tuple[int, str], Known] = {}
        self.exported: list[ExportCall] = []
        self.scope: ModuleScope | None = None
        self._open: dict[str, Ways] = {}

    def wants(self, place: type[Place]) -> bool:
        return place is ExportCall or bool(self.index.for_place(place))

    def wants_call(self, name: str) -> bool:
        return bool(self.index.for_call(name))

    def notice(self, place: Place) -> None:
        if isinstance(place, ExportCall):
            self.exported.append(place)
        index = self.index
        rules = index.for_call(place.name) if isinstance(place, Call) else index.for_place(type(place))
        for rule in rules:
            for report in rule.check(place):
                self._keep(report)

    def take(self, found: dict[tuple[int, str], Known]) -> None:
        """Add what another interpretation found."""
        for key, theirs in found.items():
            known = self.found.get(key)
            if known is None:
                self.found[key] = replace(
                    theirs,
                    entries=set(theirs.entries),
                    surely=set(theirs.surely),
                    ways=dict(theirs.ways),
                    by_entry=dict(theirs.by_entry),
                )
                continue
            for entry, report in theirs.by_entry.items():
                known.take_entry(entry, report)
            if theirs.supposed and not known.supposed:
                known.report = replace(known.report, supposing=theirs.report)
                continue
            if known.supposed and not theirs.supposed:
                supposing = known.report
                known.report, known.certain, known.supposed = theirs.report, theirs.certain, False
                known.report = replace(known.report, supposing=supposing)
            known.take_ways(theirs.ways)
            known.entries |= theirs.entries
            known.surely |= theirs.surely
            if _weight(theirs.report, theirs.certain) > _weight(known.report, known.certain):
                known.report, known.certain = theirs.report, theirs.certain

    def _keep(self, report: Report) -> None:
        site = (report.through or report.place).site
        if site.assumed and report.rule.left_to_python:
            return
        key = (id(report.node), report.rule.code)
        known = self.found.get(key)
        if site.supposed:
            if known is None:
                known = self.found[key] = Known(report, False, supposed=True)
            if not known.supposed:
                known.report = replace(known.report, supposing=report)
            elif site.entry is not None and self.scope is not None:
                known.entries.add(f"{self.scope.path}:{site.entry}")
            return
        owner = (
            self._owner(site)
            if not site.certain and (report.rule.of_optional_inputs or not site.optional)
            else None
        )
        certain = site.certain or (
            owner is not None
            and not any(asks_for_an_open_option(condition, owner) for condition in site.conditions)
        )
        if known is None:
            known = self.found[key] = Known(report, certain)
        elif _weight(report, certain) > _weight(known.report, known.certain):
            known.report, known.certain = report, certain
        known.take_ways({tuple(id(node) for _, _, node in site.trail): site.trail})
        if site.entry is not None and self.scope is not None:
            entry = f"{self.scope.path}:{site.entry}"
            known.entries.add(entry)
            known.take_entry(entry, report)
            if certain:
                known.surely.add(entry)
            elif owner is not None and report.outcome.strict is report.outcome.non_strict is FAILS:
                ways = self._open.setdefault(entry, Ways(owner))
                for each in ways.add(site.conditions, key):
                    self.found[each].certain = True
                    self.found[each].surely.add(entry)

    def _owner(self, site: Site) -> ast.stmt | None:
        """The very class that is traced, where a place stands in it, and what leads there is as usual as not.

        What a class does under an option or with an input of its own is a use that it was written for; what a helper
        does under a condition may be meant for others. Of the modules that export soundly, 1 in 300 has a hazard of
        the first kind, 1 in 10 one of the second (tests/real).
        """
        if site.entry is None or self.scope is None or site.scope is not self.scope:
            return None
        if site.condition is not None and (
            _asks_what_inputs_are(site.condition)
            or _asks_for_none(site.condition)
            or _handles_an_exception(site.condition)
        ):
            return None
        bindings = site.scope.bindings.get(site.entry.partition(".")[0], ())
        return next((statement for chunk, statement in bindings if chunk is site.chunk), None)


_FACTS = frozenset(
    {"shape", "size", "dim", "ndim", "numel", "dtype", "device", "is_floating_point", "is_complex", "is_cuda"}
)


def _asks_what_inputs_are(condition: ast.expr) -> bool:
    """Whether a condition hangs on the type or the sizes of a tensor, rather than on an option."""
    return any(isinstance(node, ast.Attribute) and node.attr in _FACTS for node in ast.walk(condition))


def _asks_for_none(condition: ast.expr) -> bool:
    """Whether a condition is that there is nothing in a list, which hardly ever is so: `len(found) == 0`, `not len(found) > 0`."""
    negated = isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not)
    if isinstance(condition, ast.UnaryOp) and negated:
        condition = condition.operand
    return (
        isinstance(condition, ast.Compare)
        and isinstance(condition.ops[0], (ast.Gt, ast.NotEq) if negated else (ast.Eq, ast.LtE))
        and isinstance(condition.left, ast.Call)
        and isinstance(condition.left.func, ast.Name)
        and condition.left.func.id == "len"
        and isinstance(condition.comparators[0], ast.Constant)
        and condition.comparators[0].value == 0
    )


def _handles_an_exception(condition: ast.expr) -> bool:
    """Whether an `except` leads to a place: where nothing is known to raise, the body is taken to come by."""
    # No name of Python's is `except`, or has a space.
    return isinstance(condition, ast.Name) and condition.id.partition(" ")[0] == "except"


def _weight(report: Report, certain: bool) -> tuple[bool, int]:
    """Of two reports on one node, the one that says more is kept: the certain one, then that on more modes."""
    outcome = report.outcome
    return certain, (outcome.strict is not OK) + (outcome.non_strict is not OK)
