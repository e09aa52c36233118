"""The machine: the state of one interpretation, and what every part of the interpreter needs from it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from exportlens.inference.places import Place, Site
from exportlens.inference.scopes import ModuleScope, Workspace
from exportlens.inference.state import Changes, Journal
from exportlens.inference.values import ClassValue, Function, Tensor, Unknown, Value
from exportlens.outcome import Mode, TorchVersion
from exportlens.source.document import Chunk


class Cancelled(Exception):
    """The caller no longer wants the result."""


class OutOfBudget(Exception):
    """The interpretation of one entry point took more steps than it may."""


class Raised(Exception):
    """Every path of the code being interpreted ends in a Python exception. `kind` is its class name where known."""

    def __init__(self, kind: str = "") -> None:
        super().__init__(kind)
        self.kind = kind


class Observer(Protocol):
    """Who wants to hear of places; the engine's bridge to the rules."""

    def wants(self, place: type[Place]) -> bool:
        """Whether any rule looks at this kind of place."""
        ...

    def wants_call(self, name: str) -> bool:
        """Whether any rule looks at calls of the qualified `name`."""
        ...

    def notice(self, place: Place) -> None:
        """Take one place."""
        ...


@dataclass(slots=True)
class Loop:
    """A loop being interpreted: where it began, and the states in which `break` and `continue` left its body."""

    mark: int
    breaks: list[Changes] = field(default_factory=list)
    continues: list[Changes] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Frame:
    """One activation: of a function, a class body, a comprehension or a module's top level."""

    scope: ModuleScope
    chunk: Chunk
    locals: dict[str, Value]
    function: Function | None = None
    closure: Frame | None = None
    receiver: Value | None = None
    owner: ClassValue | None = None
    mark: int = 0
    forks: int = 0
    returns: list[tuple[Value, Changes | None, ast.AST | None]] = field(default_factory=list)
    yields: list[Value] | None = None
    loops: list[Loop] = field(default_factory=list)
    global_names: frozenset[str] | set[str] = frozenset()
    outer_names: frozenset[str] | set[str] = frozenset()
    module_level: bool = False
    traced: bool = False
    """Whether it began while a model was traced."""
    drawn: dict[str, Place] | None = None
    """Variables that hold random numbers that nothing has read yet, with the call that drew each."""

    def visible(self) -> dict[str, Value]:
        """The local names, and those of the functions around (a comprehension is one), with their values."""
        outer = {} if self.closure is None else self.closure.visible()
        return {**outer, **self.locals}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the interpretation assumes: the torch, the modes, and whether the model is in training mode."""

    version: TorchVersion
    modes: tuple[Mode, ...]
    training: bool = False

    @property
    def strict(self) -> bool:
        """Whether strict tracing is asked for, alone or beside the other."""
        return Mode.STRICT in self.modes


class Machine:
    """State shared by all parts of one interpretation: journal, budget, call trail, and the observer."""

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        observer: Observer,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.workspace = workspace
        self.settings = settings
        self.observer = observer
        self.cancelled = cancelled
        self.journal = Journal()
        self.trail: list[tuple[ModuleScope, Chunk, ast.AST]] = []
        self.active: list[Function] = []
        self.doubt = 0
        self.refusals = 0
        self.attempts = 0
        # What was raised last: where, by which statement, and the exception or its class.
        self.thrown: tuple[Site, ast.AST, Value] | None = None
        self.conditions: list[ast.expr | None] = []
        # Whether the inputs that may be left out are given in this run.
        self.optional = False
        # The arguments that this run takes for tensors without evidence.
        self.supposed: dict[str, Tensor] = {}
        # What examples in the file tell of the arguments of this run's entry point.
        self.told: dict[str, Tensor] = {}
        # What they tell of those that its `*args` takes.
        self.told_rest: tuple[Tensor | None, ...] = ()
        # The arguments that the constructor of this run's entry point gets, where the file itself makes it so.
        self.configured: Mapping[str, Value] = {}
        # The flags that the constructor of the last run's entry point left, and those that this run finds set the other way.
        self.flags: Mapping[str, bool] = {}
        self.switched: Mapping[tuple[str, ...], Value] = {}
        # What the file sets from outside, and what of that the last run found to be otherwise: by the paths of attributes.
        self.outside: frozenset[tuple[str, bool | int | float]] = frozenset()
        self.set_outside: Mapping[tuple[str, ...], Value] = {}
        # What the attributes that methods begin from outside of the call hold, by class and name, as far as the call has told.
        self.begun: dict[tuple[str, str], Value] = {}
        # Whether the sizes of tensors that are made are followed: in a run for what the examples' sizes tell.
        self.sized = False
        # Whether the model is called once more in such a run, with what the first call left.
        self.later = False
        # The calls of models with their arguments, where only these are asked for; None elsewhere.
        self.called: list[tuple[ClassValue, tuple[Value, ...]]] | None = None
        # How many contexts around here switch gradients off.
        self.without_gradients = 0
        # How many functions under torch.compiler.assume_constant_result are being followed.
        self.assumed = 0
        # Whether torch.autocast is in force for tensors on the CPU.
        self.autocast = False
        self.entry: str | None = None
        self.tracing = False
        self.quiet = 0
        self.steps = 0
        self.limit = 40_000
        self.version = 0
        self.library_calls = 0
        self.decorating = False
        self.returned: list[tuple[Value, ast.AST | None]] = []
        # The entry's method as it is written, where a decorator's wrapper runs in its place, and what that returned.
        self.written: ast.AST | None = None
        self.returned_inside: list[tuple[Value, ast.AST | None]] = []
        self.log: list[Place] = []
        # Of each attribute that traced code wrote, by its object's identity: what it held before, and the functions that wrote it.
        self.attributes_written: dict[tuple[int, str], tuple[Value | None, list[ast.AST | None]]] = {}
        # Of each attribute that held a tensor when the call began and was not written yet: the functions that read it, and where.
        # As keys, in order: a loop reads at one place many times.
        self.attributes_read: dict[tuple[int, str], dict[tuple[ast.AST, ast.AST], None]] = {}
        # The dicts that traced code read as attributes, by identity: the dict, its object, and the attribute.
        self.dicts_read: dict[int, tuple[Value, Value, str]] = {}
        self.roots = itertools.count(1)
        self.memo: dict[Any, Any] = {}
        self.made: dict[Any, tuple[Value, list[Value]]] = {}
        self.data_guards: list[Value] = []
        # Calls that draw random numbers in a test that a later operand may make irrelevant; None outside of such a test.
        self.draws: list[Place] | None = None
        self.watch: Callable[[ast.AST, Value, Frame], None] | None = None

    def new_root(self) -> int:
        return next(self.roots)

    def step(self) -> None:
        """Count one statement or call; stop when the budget is spent or the caller lost interest."""
        self.steps += 1
        if self.steps > self.limit:
            raise OutOfBudget
        if self.steps % 256 == 0 and self.cancelled():
            raise Cancelled

    def site(self, frame: Frame) -> Site:
        return Site(
            frame.scope,
            frame.chunk,
            frame.function,
            tuple(self.trail),
            self.doubt == 0,
            self.entry,
            tuple(self.conditions),
            self.optional,
            self.without_gradients == 0,
            tuple(self.supposed),
            self.assumed > 0,
        )

    def emits(self, kind: type[Place]) -> bool:
        """Whether a place of this kind is worth making now: only what tracing reaches is judged."""
        return self.tracing and not self.quiet and self.observer.wants(kind)

    def notice(self, place: Place) -> None:
        self.log.append(place)
        self.observer.notice(place)

    @contextmanager
    def doubting(self, yes: bool = True, condition: ast.expr | None = None) -> Iterator[None]:
        """Code that only configuration that is not known leads to; `condition` is the test that decides it."""
        if not yes:
            yield
            return
        self.doubt += 1
        self.conditions.append(condition)
        try:
            yield
        finally:
            self.doubt -= 1
            self.conditions.pop()

    def unknown(self, why: str) -> Unknown:
        return Unknown(why)
