"""How a file makes its own models: with which arguments the code around them calls their constructors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from exportlens.inference.classes import class_order
from exportlens.inference.machine import Frame, Machine, OutOfBudget, Raised
from exportlens.inference.names import apart
from exportlens.inference.places import Place
from exportlens.inference.scopes import ModuleScope
from exportlens.inference.state import Locals
from exportlens.inference.values import (
    Choice,
    ClassValue,
    Const,
    Function,
    Instance,
    Mapping_,
    Sequence,
    Unknown,
    Value,
)
from exportlens.source.document import Chunk
from exportlens.source.walking import walk

# `branch.gate = True`, on a line of its own, of any object but `self`.
_SWITCH = re.compile(
    r"^[ \t]*(?!self\.\w+[ \t]*=)[\w.\[\]]+\.(\w+)[ \t]*=[ \t]*(True|False)[ \t]*(?:#.*)?$", re.MULTILINE
)
# Code before a construction is followed for what it gives to the constructor alone.
_MOST_STEPS = 2_000
# `model.encoder.set_patience(2)`, on a line of its own, of any object but `self`.
_SETTING = re.compile(
    r"^[ \t]*(?!self\.)[\w.\[\]]+\.(\w+)\([ \t]*(?:\w+[ \t]*=[ \t]*)?(True|False|-?\d+(?:\.\d+)?)[ \t]*\)[ \t]*(?:#.*)?$",
    re.MULTILINE,
)
# How deep parts of parts are looked at for methods that set something.
_MAX_DEPTH = 3
# Each is at least one more interpretation of the model.
_MOST = 2
_MOST_MADE = 8

# What a file sets from outside of its objects: names and what they are set to.
Outside = frozenset[tuple[str, bool | int | float]]


class _Nobody:
    """An observer that sees nothing."""

    def wants(self, place: type[Place]) -> bool:
        return False

    def wants_call(self, name: str) -> bool:
        return False

    def notice(self, place: Place) -> None:
        pass


_NOBODY = _Nobody()


@dataclass(frozen=True, slots=True)
class Construction:
    """A call of a class outside of all classes, in a `statement` of the file; `own` are the names that a function or block binds there."""

    chunk: Chunk
    call: ast.Call
    statement: ast.stmt
    own: frozenset[str]


def constructions(scope: ModuleScope, name: str) -> Iterator[Construction]:
    """The calls of the class `name` in the code around the classes: what other classes make is interpreted with them."""
    for placed in scope.document.placed:
        if f"{name}(" not in placed.chunk.text:
            continue
        for statement in placed.chunk.body:
            if isinstance(statement, ast.ClassDef):
                continue
            calls = [
                each
                for each in walk(statement)
                if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name
            ]
            own = _bound_in(statement) if calls else frozenset()
            for call in calls:
                yield Construction(placed.chunk, call, statement, own)


def _bound_in(statement: ast.stmt) -> frozenset[str]:
    """The names that are bound somewhere inside a function or block, where it need not be once, nor before."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
        return frozenset()
    nodes = list(walk(statement))
    stored = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return frozenset(stored | {each.arg for each in nodes if isinstance(each, ast.arg)})


def configurations(
    machine: Machine, cls: ClassValue, init: Function, made: Iterable[Construction]
) -> list[Mapping[str, Value]]:
    """The arguments of each of the constructions of `cls` that are `made`: by the names of the parameters of `init`, those of which a
    value is known."""
    found: dict[str, Mapping[str, Value]] = {}
    for each in made:
        arguments = _arguments(init, each.call)
        if arguments is None or len(found) == _MOST_MADE:
            continue
        text = ", ".join(f"{name}={ast.unparse(node)}" for name, node in sorted(arguments.items()))
        if text not in found:
            known = {name: _value(machine, cls.scope, each, node) for name, node in arguments.items()}
            found[text] = {name: value for name, value in known.items() if value is not None}
    return list(found.values())


def other_configurations(
    machine: Machine, cls: ClassValue, init: Function, made: Iterable[Construction]
) -> list[Mapping[str, Value]]:
    """Those of the `configurations` that switch something on that the defaults of `init` leave off, or the other way round, or that
    hand in an object: what it does is not known otherwise."""
    defaults = _defaults(init)
    return [
        each
        for each in configurations(machine, cls, init, made)
        if any(_switches(defaults.get(name), value) for name, value in each.items())
    ][:_MOST]


def flags_set_outside(scope: ModuleScope) -> Outside:
    """What the file sets objects' attributes to that are flags, from outside of the objects: `model.exits = True`; and under
    `name()` the one number or flag that it calls a method with: `model.set_patience(2)`."""
    return frozenset(each for placed in scope.document.placed for each in _set_in(placed.chunk.text))


def switched(flags: Mapping[str, bool], outside: Outside) -> dict[str, Value]:
    """The `flags` that a constructor leaves and that are set the other way from `outside`, as they are then."""
    return {
        name: Const(not flag)
        for name, flag in flags.items()
        if name != "training" and (name, not flag) in outside
    }


def set_by_methods(instance: Instance, outside: Outside, depth: int = 0) -> dict[tuple[str, ...], Value]:
    """The numbers and flags that a constructor leaves, of `instance` and its parts, and that a method called from `outside` sets to
    others: their paths, and what they are then."""
    calls = {name.removesuffix("()"): value for name, value in sorted(outside) if name.endswith("()")}
    if not calls or depth > _MAX_DEPTH or instance.traced:
        return {}
    found: dict[tuple[str, ...], Value] = {}
    for name, held in instance.attributes.items():
        if isinstance(held, Instance):
            parts = set_by_methods(held, outside, depth + 1)
            found |= {(name, *path): value for path, value in parts.items()}
    classes = [each for each in class_order(instance.cls) if isinstance(each, ClassValue)]
    for attr, method in (each for cls in classes for each in _setting(cls.node)):
        now = instance.attributes.get(attr)
        given = calls.get(method)
        if isinstance(now, Const) and type(now.value) is type(given) and now.value != given:
            found[(attr,)] = Const(given)
    return found


@lru_cache(maxsize=1024)
def _setting(cls: ast.ClassDef) -> tuple[tuple[str, str], ...]:
    """The attributes that methods of `cls` with one parameter set to it, each with the name of the method."""
    return tuple(
        (each.targets[0].attr, method.name)
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and len(method.args.args) == 2
        for each in method.body
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Attribute)
        and ast.unparse(each.targets[0].value) == method.args.args[0].arg
        and ast.unparse(each.value) == method.args.args[1].arg
    )


@lru_cache(maxsize=4096)
def _set_in(text: str) -> Outside:
    flags = frozenset((name, flag == "True") for name, flag in _SWITCH.findall(text))
    calls = _SETTING.findall(text)
    return flags | frozenset((f"{name}()", ast.literal_eval(value)) for name, value in calls)


def _defaults(init: Function) -> dict[str, Value]:
    spec = init.node.args
    positional = [*spec.posonlyargs, *spec.args]
    named = [
        *zip(positional[::-1], init.defaults[::-1], strict=False),
        *zip(spec.kwonlyargs, init.kw_defaults, strict=False),
    ]
    return {each.arg: value for each, value in named if value is not None}


def _arguments(init: Function, call: ast.Call) -> dict[str, ast.expr] | None:
    """Which parameter gets which expression; None where the call spreads its arguments over several, or gives ones that have no name."""
    spec = init.node.args
    positional = [each.arg for each in (*spec.posonlyargs, *spec.args)][1:]
    first, rest = call.args[: len(positional)], call.args[len(positional) :]
    if spec.vararg is not None and not positional:
        first, rest = [], call.args
    spread = any(isinstance(each, ast.Starred) for each in first)
    if spread or (rest and spec.vararg is None) or any(each.arg is None for each in call.keywords):
        return None
    given = dict(zip(positional, first, strict=False))
    given.update({str(each.arg): each.value for each in call.keywords})
    if not set(given) <= {*positional, *(each.arg for each in spec.kwonlyargs)}:
        return None
    if rest and spec.vararg is not None:
        given[spec.vararg.arg] = ast.Tuple(rest, ast.Load())
    return given


def _value(machine: Machine, scope: ModuleScope, made: Construction, node: ast.expr) -> Value | None:
    """What an argument is; None where that is not known."""
    from exportlens.inference.expressions import evaluate

    own = made.own & _read(node)
    with apart(machine, _MOST_STEPS):
        observer, machine.observer = machine.observer, _NOBODY
        try:
            frame = Frame(scope, made.chunk, scope.values, module_level=True)
            if own:
                frame = Frame(scope, made.chunk, Locals({name: Unknown("not followed") for name in made.own}))
                _run_before(machine, [made.statement], made.call, frame)
            value = evaluate(machine, node, frame)
        except (Raised, OutOfBudget, RecursionError):
            return None
        finally:
            machine.observer = observer
    if own and _is_from_elsewhere(value, scope):
        return None
    return None if isinstance(value, (Unknown, Choice)) else value


def _is_from_elsewhere(value: Value, scope: ModuleScope) -> bool:
    """Whether it is an object of a class of another file, or holds one: what the file's own code hands in as an example is judged there,
    and whoever imports the model may hand in another one."""
    if isinstance(value, Sequence):
        held = value.items if value.items is not None else [value.element]
        return any(each is not None and _is_from_elsewhere(each, scope) for each in held)
    if isinstance(value, Mapping_):
        parts = (*value.items.values(), value.rest)
        return any(each is not None and _is_from_elsewhere(each, scope) for each in parts)
    cls = value.cls if isinstance(value, Instance) else value
    return isinstance(cls, ClassValue) and cls.scope.path != scope.path


def _read(node: ast.expr) -> set[str]:
    """The names that an expression reads and does not bind itself, as comprehensions and lambdas do."""
    nodes = list(walk(node))
    bound = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    bound |= {each.arg for each in nodes if isinstance(each, ast.arg)}
    return {each.id for each in nodes if isinstance(each, ast.Name)} - bound


def _run_before(machine: Machine, body: list[ast.stmt], call: ast.Call, frame: Frame) -> None:
    """Run what stands before `call` in the blocks around it; of what leads into these blocks nothing is known."""
    from exportlens.inference.statements import run_block

    for statement in body:
        if not any(each is call for each in walk(statement)):
            if not run_block(machine, [statement], frame):
                return
            continue
        for name in ("body", "orelse", "handlers", "finalbody"):
            inner = getattr(statement, name, None)
            if isinstance(inner, list) and any(each is call for part in inner for each in walk(part)):
                _run_before(machine, inner, call, frame)
        return


def _switches(default: Value | None, given: Value) -> bool:
    """Whether code may go another way with what is `given`: a number for a number is the same way, unless one is zero."""
    if default is None:
        return _does_something(given)
    if not isinstance(default, Const):
        return False
    if not isinstance(given, Const):
        return default.value is None
    if _family(default.value) is not _family(given.value) or bool(default.value) is not bool(given.value):
        return True
    return isinstance(given.value, str) and default.value != given.value


def _does_something(given: Value) -> bool:
    """Whether it is an object, a class or a function, or a container of some."""
    if isinstance(given, Sequence):
        held = given.items if given.items is not None else [given.element]
        return any(each is not None and _does_something(each) for each in held)
    if isinstance(given, Mapping_):
        return any(_does_something(each) for each in (*given.items.values(), given.rest) if each is not None)
    return isinstance(given, (Instance, Function, ClassValue))


def _family(value: object) -> type:
    return float if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)
