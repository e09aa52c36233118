"""class Rule and the registry: a rule names the places that it looks at and says what is wrong there."""

from __future__ import annotations

import ast
import fnmatch
import functools
import importlib
import importlib.metadata
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from exportlens import measurements
from exportlens.finding import Fix, Refusal, Severity
from exportlens.inference.places import Place, Trail
from exportlens.outcome import Mode, Outcome, TorchVersion

if TYPE_CHECKING:
    from exportlens.rewriting.code.context import RewriteContext

RULE_URL = "https://github.com/exportlens/exportlens/blob/main/docs/rules/{code}.md"


@dataclass(frozen=True, slots=True)
class Example:
    """Runnable proof of a rule: `bad` shows the hazard, `good` the way out.

    Each is the source of a whole file that defines a Module `M` (or, when the text starts with "def forward", the forward of
    one); `inputs` is an expression for the tuple of example inputs, `init` one for M's constructor arguments.
    `dynamic_shapes` is an expression or None. `outcome` overrides the rule's outcome where one rule has several.
    """

    bad: str
    good: str
    inputs: str = "(torch.randn(3, 4),)"
    init: str = "()"
    dynamic_shapes: str | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a rule says of one place; the engine makes it a Finding for the user's torch and mode."""

    rule: Rule
    place: Place
    node: ast.AST
    message: str
    outcome: Outcome
    notes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    """The hardware targets that it is said of, where a rule on targets does not speak of all of its own."""
    ways: tuple[Trail, ...] = ()
    """The calls that lead to the place from the entry points, as the engine has seen them: each way of several."""
    through: Place | None = None
    """The place in traced code that leads here, if this one lies in what is called there: whose use it is."""
    only_where: str = ""
    """What must hold for it, where nothing tells whether that does: such a report is a remark."""
    supposing: Report | None = None
    """The report of the same where arguments that nothing tells of are taken for tensors: a fix that does for both is to be had there."""
    elsewhere: tuple[Report, ...] = ()
    """The reports of the same from other entry points, as those that give the constructor what this one is only handed."""


def concerns(patterns: tuple[str, ...], targets: Iterable[str]) -> bool:
    """Whether one of the configured `targets` is meant by `patterns`, each exact or ending in "*"; none mean everyone."""
    return not patterns or any(
        target == "all" or fnmatch.fnmatchcase(target, pattern) for target in targets for pattern in patterns
    )


class Rule:
    """Base of all rules. Subclass it in a file of its own; nothing else has to be touched.

    `places` are the Place classes that `check` is called for; for `Call`, `callees` narrows to qualified names, each exact or ending in ".*"
    (empty: every call). A rule has a fix when it overrides `fix`. With `of_declared_sizes` it also sees the places of a
    run in which inputs have the sizes that an export call's `dynamic_shapes` declares. Unless `of_optional_inputs`, what
    only inputs lead to that may be left out is a warning: such a model is mostly exported without them. Unless `decided_here`, what
    no source shows decides, such as what the model did before: its findings are warnings at most. What a rule that is
    `left_to_python` finds is no matter under `torch.compiler.assume_constant_result`: Python runs such a function while
    tracing, and what it gives is meant to stay. A rule without `fix` says in `no_fix` why there is none, which its findings tell.

    `targets` names the hardware targets whose hazard this is, each exact or ending in "*": the rule looks at code only
    where one of them is configured, and its `outcome` is what such a target does with what torch exports.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    outcome: ClassVar[Outcome]
    places: ClassVar[tuple[type[Place], ...]]
    callees: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[tuple[Example, ...]] = ()
    of_declared_sizes: ClassVar[bool] = False
    of_optional_inputs: ClassVar[bool] = True
    decided_here: ClassVar[bool] = True
    left_to_python: ClassVar[bool] = False
    no_fix: ClassVar[str] = ""
    targets: ClassVar[tuple[str, ...]] = ()

    def check(self, place: Place) -> Iterator[Report]:
        """Yield a report for each thing wrong at `place`. Called often: be quick, and silent where a value is unknown."""
        raise NotImplementedError

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        """The fix for one report; a Refusal says what could not be proved, None means that the rule has no fix."""
        return None

    def report(
        self,
        place: Place,
        message: str,
        *,
        node: ast.AST | None = None,
        outcome: Outcome | None = None,
        notes: tuple[str, ...] = (),
        targets: tuple[str, ...] = (),
        only_where: str = "",
    ) -> Report:
        full = self.measured(outcome or self.outcome)
        return Report(self, place, node or place.node, message, full, notes, targets, only_where=only_where)

    def severity(self, outcome: Outcome, version: TorchVersion, modes: tuple[Mode, ...]) -> Severity | None:
        """The severity of a finding of this rule with `outcome`; None where torch handles it."""
        found = outcome.severity(version, modes)
        return Severity.WARNING if found is Severity.ERROR and not self.decided_here else found

    def measured(self, stated: Outcome) -> Outcome:
        """`stated` with what real exports of this rule's examples of that outcome ended in, as the pack's table has it."""
        for known, full in self._with_measurements:
            if known == stated:
                return full
        return stated

    @functools.cached_property
    def _with_measurements(self) -> list[tuple[Outcome, Outcome]]:
        # What a target does with a program is not in the table of what torch.export does.
        rows = {} if self.targets else measurements.table(type(self).__module__.partition(".")[0])
        found: list[tuple[Outcome, Outcome]] = []
        for outcome in [
            self.outcome,
            *(example.outcome for example in self.examples if example.outcome is not None),
        ]:
            numbers = [
                number
                for number, example in enumerate(self.examples, start=1)
                if (example.outcome or self.outcome) == outcome
            ]
            tables = [rows[key] for key in (f"{self.code}-{number}" for number in numbers) if key in rows]
            found.append((outcome, measurements.measured(outcome, tables)))
        return found

    @property
    def url(self) -> str:
        return RULE_URL.format(code=self.code)

    @classmethod
    def has_fix(cls) -> bool:
        return cls.fix is not Rule.fix

    @classmethod
    def documentation(cls) -> str:
        return inspect.cleandoc(cls.__doc__ or "")


class DuplicateCode(ValueError):
    """Two installed rules share a code; the message names both."""


@functools.cache
def registry() -> tuple[Rule, ...]:
    """All rules of the installed packs (entry point group `exportlens.rules`), by code.

    An entry point names a package (every Rule in its modules counts) or a Rule class. Raises DuplicateCode.
    """
    classes: dict[str, type[Rule]] = {}
    for entry in sorted(
        importlib.metadata.entry_points(group="exportlens.rules"), key=lambda entry: entry.name
    ):
        loaded: Any = entry.load()
        found: list[type[Rule]]
        found = (
            list(_rules_of(loaded.__name__, list(loaded.__path__))) if inspect.ismodule(loaded) else [loaded]
        )
        for rule in found:
            other = classes.setdefault(rule.code, rule)
            if other is not rule:
                raise DuplicateCode(
                    f"two rules share the code {rule.code}: {other.__qualname__} and {rule.__qualname__}"
                )
    return tuple(classes[code]() for code in sorted(classes))


def _rules_of(package: str, path: list[str]) -> Iterator[type[Rule]]:
    for module_info in pkgutil.walk_packages(path, package + "."):
        module = importlib.import_module(module_info.name)
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and issubclass(value, Rule)
                and value.__module__ == module.__name__
                and "code" in vars(value)
            ):
                yield value
